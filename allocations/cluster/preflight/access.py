"""Checks of the portal's own rights, and of the priority level of tenants' requests. Pure."""

from collections.abc import Collection, Iterable, Iterator

from allocations.cluster import names
from allocations.cluster.preflight.findings import APPLY, USE_PORTAL_TOKEN, ok, ok_or_problem, problem, unreadable
from allocations.cluster.preflight.types import ClusterFacts, Finding, FlowSchema, ReadError, Requirements, Status

PEOPLE_GROUP = names.service_accounts(names.PEOPLE_NAMESPACE)
EVERYBODY = ("system:serviceaccounts", "system:authenticated")
"""Groups of all service accounts."""


def rights(facts: ClusterFacts, requirements: Requirements) -> Iterator[Finding]:
    """Check that the portal has all rights that it needs, and none by which it could take over the cluster."""
    lacking = [str(right) for right in requirements.required_rights if not facts.rights.get(right, False)]
    found = f"may not {'; '.join(lacking)}" if lacking else f"all {len(requirements.required_rights)} that are needed"
    yield ok_or_problem("Our rights", not lacking, found, f"{APPLY}, and {USE_PORTAL_TOKEN}")
    excessive = [str(right) for right in requirements.excessive_rights if facts.rights.get(right, False)]
    found = "may " + "; ".join(excessive) if excessive else "none"
    fix = f"{USE_PORTAL_TOKEN} and nothing else, and bind no other role to it"
    yield ok_or_problem("Rights we should not have", not excessive, found, fix)


def fairness(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that the requests of people and of projects' service accounts have a priority level of their own.

    In API Priority and Fairness the first FlowSchema that matches a request decides its level.
    """
    name = "Tenants' priority level"
    if isinstance(facts.flows, ReadError):
        yield unreadable(name, facts.flows)
        return
    first = _first_match(facts.flows, PEOPLE_GROUP)
    if first is None:
        yield problem(name, "no FlowSchema has their requests", APPLY)
        return
    own = (first.name, names.PROJECTS_FLOW)
    others = sorted(flow.name for flow in facts.flows if flow.level == first.level and flow.name not in own)
    is_shared = first.groups != (PEOPLE_GROUP,) or bool(others)
    words = f"FlowSchema {first.name} puts them into {first.level}"
    with_others = f", with requests of {', '.join(others) or ', '.join(first.groups)}" if is_shared else ", their own"
    fix = f"{APPLY}, and give no FlowSchema for {', '.join(EVERYBODY)} a lower matchingPrecedence"
    yield ok_or_problem(name, not is_shared, words + with_others, fix)
    yield _accounts_of_projects(facts.flows, facts.projects, first.level)


def _accounts_of_projects(flows: Collection[FlowSchema], projects: Collection[str], level: str) -> Finding:
    """Return whether the service accounts of projects, whose tokens pods mount, are in the tenants' level too."""
    name = "Priority level of projects' accounts"
    matches = {project: _first_match(flows, names.service_accounts(project)) for project in sorted(projects)}
    elsewhere = [project for project, flow in matches.items() if flow is None or flow.level != level]
    if not elsewhere:
        return ok(name, f"{level}, of {len(projects)} namespaces")
    listed = f"{', '.join(elsewhere[:5])}{', …' if elsewhere[5:] else ''}"
    found = f"{len(elsewhere)} of {len(projects)} namespaces are not in {level}: {listed}"
    fix = (
        f"run a worker, which keeps FlowSchema {names.PROJECTS_FLOW}, and give no FlowSchema for "
        f"{', '.join(EVERYBODY)} a lower matchingPrecedence"
    )
    return Finding(name, Status.ADVICE, found, fix)


def _first_match(flows: Iterable[FlowSchema], group: str) -> FlowSchema | None:
    """Return the FlowSchema that has the requests of a group of service accounts: the first one that matches."""
    matching = [flow for flow in flows if any(each in (group, *EVERYBODY) for each in flow.groups)]
    return min(matching, key=lambda flow: (flow.precedence, flow.name), default=None)
