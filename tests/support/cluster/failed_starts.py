"""Starts that fail early, and what is seen of the first failure."""

from collections.abc import Iterator
from contextlib import contextmanager

from allocations.models import Allocation, Transition
from quotas.catalog.models import Flavor
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


def first_failure(row: Allocation) -> Transition:
    """Return the first failed start, once there is one."""
    failures = row.transitions.filter(type="start_failed").order_by("id")
    return eventually(lambda: failures[0], IndexError)
