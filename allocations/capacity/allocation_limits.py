"""Limits on the number of allocations of a project and of each person in it: live ones, and scheduled ones.

A live allocation has a number in its project. A scheduled one gets its number at its start, and does not count as live
before.
"""

from collections import Counter
from collections.abc import Iterable

from django.conf import settings

from allocations.domain.admission import LIVE_PER_PROJECT, AllocationLimit, ApplicableLimits
from allocations.models import Allocation
from portal.core.reading import Columns, read_tables
from portal.tenants.models import Project, User


def applicable_limits(project: Project, user: User) -> ApplicableLimits:
    """Return the limits of the project and of the person in it, with their use, in one query.

    A caller that creates an allocation must hold the project's advisory lock ``live``.
    """
    (rows,) = read_tables(numbers(project))
    return of_numbers(rows, user)


def numbers(project: Project) -> Columns:
    """Return what to read for the limits: number and member of each allocation that has not ended."""
    live = Allocation.objects.filter(project=project, ended_at=None)
    return Columns(live.order_by(), ("number", "requested_by_id"))


def of_numbers(rows: Iterable[tuple[int | None, int]], user: User) -> ApplicableLimits:
    """Return the limits by rows of ``numbers``."""
    used: Counter[tuple[str, bool]] = Counter()
    rows = list(rows)
    for number, member in rows:
        used["project", number is None] += 1
        used["member", number is None] += member == user.pk
    return ApplicableLimits(
        live=(
            AllocationLimit("project", is_scheduled=False, limit=LIVE_PER_PROJECT, used=used["project", False]),
            AllocationLimit("member", is_scheduled=False, limit=settings.LIVE_PER_MEMBER, used=used["member", False]),
        ),
        scheduled=(
            AllocationLimit(
                "project", is_scheduled=True, limit=settings.SCHEDULED_PER_PROJECT, used=used["project", True]
            ),
            AllocationLimit(
                "member", is_scheduled=True, limit=settings.SCHEDULED_PER_MEMBER, used=used["member", True]
            ),
        ),
        numbers=frozenset(number for number, _ in rows if number is not None),
    )
