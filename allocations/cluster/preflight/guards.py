"""Checks of what protects the cluster from tenants: admission policies, priority classes and roles. Pure."""

from collections.abc import Iterator

from allocations.cluster import names
from allocations.cluster.preflight.findings import APPLY, ok_or_problem, unreadable
from allocations.cluster.preflight.types import ClusterFacts, Finding, ReadError, Requirements

GUARD_PREFIX = "gpu-portal-"
VALIDATING, MUTATING = "validatingadmissionpolicies", "mutatingadmissionpolicies"
MUTATING_API = f"admissionregistration.k8s.io/v1/{MUTATING}"
PRIORITIES = {names.HOLDER_CLASS: 1_000_000_000, names.QUEUED_JOB_CLASS: 100}
"""Values of the portal's PriorityClasses, which never preempt."""


def guards(facts: ClusterFacts, requirements: Requirements) -> Iterator[Finding]:
    """Check that this release's admission policies are in place and deny on errors, and that no former ones remain."""
    name = "Guards"
    if isinstance(facts.guards, ReadError):
        yield unreadable(name, facts.guards)
        return
    by_key = {(guard.kind, guard.name): guard for guard in facts.guards}
    # Where no MutatingAdmissionPolicy is served, the webhook does what they do: the check of mutation says whether.
    has_mutating = isinstance(facts.served, ReadError) or MUTATING_API in facts.served
    required = [guard for guard in requirements.guards if has_mutating or not guard.kind.startswith("Mutating")]
    wrong = []
    for guard in required:
        installed = by_key.get((guard.kind, guard.name))
        if installed is None:
            wrong.append(f"{guard.kind} {guard.name} is missing")
        elif installed.rules != guard.rules:
            wrong.append(f"{guard.kind} {guard.name} is of another release")
        elif guard.fails_closed and not installed.fails_closed:
            wrong.append(f"{guard.kind} {guard.name} lets pass what it should refuse")
    complete = f"{len(required)} policies and bindings are in place"
    yield ok_or_problem(name, not wrong, "; ".join(wrong) or complete, APPLY)
    shipped = {(guard.kind, guard.name) for guard in requirements.guards}
    former = sorted(key for key in by_key if key[1].startswith(GUARD_PREFIX) and key not in shipped)
    deletions = "; ".join(f"kubectl delete {kind.lower()} {guard}" for kind, guard in former)
    yield ok_or_problem(
        "Guards of earlier releases", not former, ", ".join(guard for _, guard in former) or "none", deletions
    )


def priority_classes(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check the value and preemption policy of the portal's PriorityClasses."""
    for priority_class, document in facts.priority_classes.items():
        name = f"PriorityClass {priority_class}"
        if isinstance(document, ReadError):
            yield unreadable(name, document)
            continue
        settings = None if document is None else (document.get("value"), document.get("preemptionPolicy"))
        found = "missing" if settings is None else f"value {settings[0]}, {settings[1]}"
        yield ok_or_problem(name, settings == (PRIORITIES[priority_class], "Never"), found, APPLY)


def tenant_roles(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that the ClusterRoles of members and viewers exist."""
    for role, exists in facts.roles.items():
        name = f"ClusterRole {role}"
        if isinstance(exists, ReadError):
            yield unreadable(name, exists)
        else:
            yield ok_or_problem(name, exists, "there" if exists else "missing", APPLY)
