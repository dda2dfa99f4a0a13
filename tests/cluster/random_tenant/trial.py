"""A run of the random tenant: bursts of operations, the invariants after each, and nothing left at the end."""

from collections.abc import Callable, Sequence

from allocations.models import Allocation
from allocations.requests import services
from portal.tenants.models import Project
from tests.cluster.random_tenant import invariants
from tests.cluster.random_tenant.generator import Generator, NamespaceState
from tests.cluster.random_tenant.operations import Performer, describe, path_of
from tests.support.cluster.api_client import MERGE_PATCH, NAMESPACED, ApiClient
from tests.support.cluster.waiting import eventually

REPLICA_SETS = "/apis/apps/v1/namespaces/{}/replicasets"
GONE_WITHIN_S = 90.0
"""All grace periods are over by then."""


def run(
    generator: Generator,
    performer: Performer,
    operations: int,
    judge: Callable[[], list[str]],
    report: Callable[[str], object],
) -> None:
    """Perform this many operations and check after each burst; raise AssertionError with findings that persist.

    An answer of 500 or above fails the run, and so does an unknown token (401).
    """
    number = 0
    while number < operations:
        for _ in range(min(generator.burst(), operations - number)):
            number += 1
            operation = generator.next()
            status, message = performer.perform(operation)
            report(f"{number} {describe(operation)} -> {status} {message}".rstrip())
            assert status < 500 and status != 401, f"operation {number} was answered by {status}: {message}"
        report(f"-- after {number} operations")
        _holds(judge)


def _holds(judge: Callable[[], list[str]]) -> None:
    """Wait until there is no finding; raise AssertionError with those left after WITHIN_S."""

    def is_clean() -> bool:
        findings = judge()
        assert not findings, "; ".join(findings)
        return True

    eventually(is_clean, AssertionError, within_s=invariants.WITHIN_S, every_s=0.3)


def namespaces_of(projects: Sequence[Project]) -> list[NamespaceState]:
    states = []
    for project in projects:
        rows = list(Allocation.objects.filter(project=project).order_by("created_at", "id"))
        live = [row.name for row in rows if row.desired == Allocation.Desired.HELD]
        ended = [row.name for row in rows if row.desired == Allocation.Desired.RELEASED][-20:]
        states.append(NamespaceState(project.slug, project.namespace, live, ended))
    return states


def clear(tenant: ApiClient, admin: ApiClient, projects: Sequence[Project]) -> None:
    """Release and delete everything, and wait until nothing is left; raise AssertionError with what is."""
    for row in Allocation.objects.filter(project__in=projects, ended_at=None).select_related("project__team"):
        services.release(row.requested_by, row)
    namespaces = [project.namespace for project in projects]

    def is_empty() -> bool:
        for namespace in namespaces:
            _delete_objects(tenant, namespace)
            # Of a Deployment that was deleted without them: tenants may read ReplicaSets, and no more.
            admin.call("DELETE", REPLICA_SETS.format(namespace), {"propagationPolicy": "Background"})
        left = invariants.leftovers(admin, namespaces)
        live = Allocation.objects.filter(project__in=projects, ended_at=None)
        assert not left, "; ".join(left)
        assert not live.exists(), [f"{row.name} is {row.phase} ({row.reason})" for row in live]
        return True

    eventually(is_empty, AssertionError, within_s=GONE_WITHIN_S, every_s=1.0)


def _delete_objects(tenant: ApiClient, namespace: str) -> None:
    """Delete the tenant's objects and remove its finalizers; a refused deletion is retried later."""
    for kind in reversed(NAMESPACED):
        for thing in tenant.items(NAMESPACED[kind].format(namespace)):
            path = path_of({"kind": kind, **thing})
            metadata = thing["metadata"]
            if "deletionTimestamp" not in metadata:
                tenant.call("DELETE", path, {"propagationPolicy": "Background"})
            if any("example.com" in name or name == "orphan" for name in metadata.get("finalizers", ())):
                tenant.call("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
