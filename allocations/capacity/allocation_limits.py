"""Limits on the number of allocations of a project and of each person in it: live ones, and scheduled ones.

A live allocation has a number in its project. A scheduled one gets its number at its start, and does not count as live
before.
"""

from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Q

from allocations.domain.admission import LIVE_PER_PROJECT, AllocationLimit
from allocations.models import Allocation
from portal.tenants.models import Project, User

Limits = tuple[AllocationLimit, ...]


class ApplicableLimits(NamedTuple):
    """The limits on a new allocation: ``live`` if it starts now, ``scheduled`` if it starts later."""

    live: Limits
    scheduled: Limits


def applicable_limits(project: Project, user: User) -> ApplicableLimits:
    """Return the limits of the project and of the person in it, with their use, in one query.

    A caller that creates an allocation must hold the project's advisory lock ``live``.
    """
    rows = Allocation.objects.filter(project=project, ended_at=None).order_by()
    live, own = Q(number__isnull=False), Q(requested_by=user)
    used = rows.aggregate(
        live=Count("pk", filter=live),
        own_live=Count("pk", filter=live & own),
        scheduled=Count("pk", filter=~live),
        own_scheduled=Count("pk", filter=~live & own),
    )
    return ApplicableLimits(
        live=(
            AllocationLimit("project", is_scheduled=False, limit=LIVE_PER_PROJECT, used=used["live"]),
            AllocationLimit("member", is_scheduled=False, limit=settings.LIVE_PER_MEMBER, used=used["own_live"]),
        ),
        scheduled=(
            AllocationLimit("project", is_scheduled=True, limit=settings.SCHEDULED_PER_PROJECT, used=used["scheduled"]),
            AllocationLimit(
                "member", is_scheduled=True, limit=settings.SCHEDULED_PER_MEMBER, used=used["own_scheduled"]
            ),
        ),
    )
