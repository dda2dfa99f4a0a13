"""Starts that fail early, and what is seen of the first failure."""

from collections.abc import Iterator
from contextlib import contextmanager

from allocations.cluster.kinds import KINDS
from allocations.models import Allocation, Transition
from quotas.catalog.models import Flavor
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually

DEADLINE_S = 2


@contextmanager
def start_deadline(flavor: str, seconds: int = DEADLINE_S) -> Iterator[None]:
    """Give starts on the flavor only so long until the end of the block."""
    found = Flavor.objects.filter(name=flavor)
    found.update(start_deadline_s=seconds)
    try:
        yield
    finally:
        found.update(start_deadline_s=None)


def first_failure(admin: ApiClient, row: Allocation) -> Transition:
    """Return the first failed start, once its reservation was given back."""
    reserved = eventually(lambda: _lease(admin, row))
    failed = eventually(lambda: row.transitions.filter(type="start_failed").order_by("id").first())
    eventually(lambda: _lease(admin, row) != reserved)
    return failed


def _lease(admin: ApiClient, row: Allocation) -> str:
    """Return the uid of its Workload; empty if there is none."""
    path = KINDS["Workload"].path(row.project.namespace, f"{row.name}-lease")
    return str(admin.call("GET", path).body.get("metadata", {}).get("uid", ""))
