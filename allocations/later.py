"""When something can be had that cannot be had now: after whose end, as the ends stand at this moment.

An estimate: ends are extended and holds released sooner. Amounts are of the pool, so where cards are cut on demand the
place that becomes free may not be one place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from allocations.availability import RESERVING, Stock
from allocations.models import Allocation
from allocations.states import Phase
from portal.tenants.models import Team
from quotas.catalog.models import Offering
from quotas.limits import counting


@dataclass(frozen=True)
class Freed:
    """At ``at`` so many slices of the offering come free; ``allocation`` is whose end it is."""

    at: datetime
    allocation: Allocation


def ends(now: datetime) -> list[Freed]:
    """When what reserves is given back, the first first: what is released or late already, now. One query."""
    rows = Allocation.objects.filter(ended_at=None, phase__in=RESERVING).select_related(
        "project__team", "offering__pool"
    )
    found = [Freed(now if row.phase == Phase.RELEASING else max(now, row.ends_at), row) for row in rows]
    return sorted(found, key=lambda one: (one.at, one.allocation.pk))


def after(stock: Stock, team: Team, offering: Offering, count: int, among: Iterable[Freed]) -> Freed | None:
    """The end after which ``team`` could have ``count`` slices; None when it can now, or none of the ends suffices.

    1. Slices of the fleet come free with every end in the pool of what is held; of the team's quota with the team's own
       ends, and with others' in the same tree of departments where the team may borrow.
    2. The first end after which both suffice is the answer.
    """
    per_slice = counting.draw(offering, 1).pools[offering.pool_id]
    quota = stock.quota(team, offering)
    borrows = quota.bound is None or quota.bound > quota.own
    free = Fraction(stock.capacity(offering).free)
    left = Fraction(quota.left)
    if count <= min(free, left) or not per_slice:
        return None
    for end in among:
        row = end.allocation
        freed = counting.draw(row.offering, row.count).pools.get(offering.pool_id, Fraction(0)) / per_slice
        if not freed:
            continue
        if row.phase != Phase.STARTING:  # which ``free`` still has
            free += freed
        if row.project.team_id == team.pk or (borrows and stock.lend_to_each_other(team, row.project.team)):
            left = min(left + freed, Fraction(quota.most))
        if count <= min(free, left):
            return end
    return None
