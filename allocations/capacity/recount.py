"""Recomputes the use of counted limits from the allocations of their holders."""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from allocations.capacity.offering_index import OfferingIndex
from allocations.models import Allocation
from portal.core.locks import advisory_lock
from portal.tenants.models import Department, Membership, Project, Team
from quotas.limits import counting, selectors, services
from quotas.limits.models import ENFORCED_BY_KUEUE, Limit
from quotas.limits.services import Holder

RELATIONS = ("project__team__department", "offering__flavor", "offering__pool", "requested_by")


def recount_departments() -> None:
    """Recompute the limits of departments after a team or department moved."""
    counted = Limit.objects.filter(department__isnull=False).exclude(ENFORCED_BY_KUEUE)
    _recount(counted.select_related("department", "pool", "offering", "flavor"))


def recount_limits_on(row: Allocation) -> None:
    """Recompute the limits on an allocation that exists without a request, such as one recovered from its lease."""
    team = row.project.team
    with transaction.atomic(), advisory_lock("limits"):
        _recount(
            counting.applicable_limits(
                [team.pk], selectors.quota_snapshot().above([team]), row.requested_by, row.project
            )
        )


def _recount(limits: QuerySet[Limit]) -> None:
    rows = list(limits)
    if not rows:
        return
    index = OfferingIndex()
    for limit in rows:
        counting.recount(limit, demands(index, services.holder_and_scope(limit)[0]))


def demands(index: OfferingIndex, holder: Holder) -> list[tuple[UUID, counting.ResourceDemand]]:
    """Return the demand of each of the holder's allocations."""
    return [(row.pk, index.demand_of(row)) for row in live_allocations(holder)]


def live_allocations(holder: Holder) -> list[Allocation]:
    """Return the holder's allocations that have not ended, the oldest first."""
    rows = Allocation.objects.select_related(*RELATIONS).filter(ended_at=None).order_by("created_at")
    match holder:
        case Membership():
            return list(rows.filter(project__team=holder.team, requested_by=holder.user))
        case Project():
            return list(rows.filter(project=holder))
        case Team():
            return list(rows.filter(project__team=holder))
        case Department():
            return list(rows.filter(project__team__department__in=selectors.below(holder)))
