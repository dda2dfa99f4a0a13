"""Checks of the portal's own rights, and of the priority level of tenants' requests. Pure."""

from collections.abc import Iterator

from allocations.cluster.preflight.findings import APPLY, USE_PORTAL_TOKEN, ok_or_problem, problem, unreadable
from allocations.cluster.preflight.types import ClusterFacts, Finding, ReadError, Requirements

PEOPLE_GROUP = "system:serviceaccounts:gpu-portal-people"
GROUPS_OF_PEOPLE = (PEOPLE_GROUP, "system:serviceaccounts", "system:authenticated")


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
    """Check that tenants' requests have a priority level of their own.

    In API Priority and Fairness the first FlowSchema that matches a request decides its level.
    """
    name = "Tenants' priority level"
    if isinstance(facts.flows, ReadError):
        yield unreadable(name, facts.flows)
        return
    matching = [flow for flow in facts.flows if any(group in GROUPS_OF_PEOPLE for group in flow.groups)]
    first = min(matching, key=lambda flow: (flow.precedence, flow.name), default=None)
    if first is None:
        yield problem(name, "no FlowSchema has their requests", APPLY)
        return
    others = sorted(flow.name for flow in facts.flows if flow.level == first.level and flow.name != first.name)
    is_shared = first.groups != (PEOPLE_GROUP,) or bool(others)
    words = f"FlowSchema {first.name} puts them into {first.level}"
    with_others = f", with requests of {', '.join(others) or ', '.join(first.groups)}" if is_shared else ", their own"
    fix = f"{APPLY}, and give no FlowSchema for {', '.join(GROUPS_OF_PEOPLE[1:])} a lower matchingPrecedence"
    yield ok_or_problem(name, not is_shared, words + with_others, fix)
