"""When something can be had that cannot be had now: after whose end, as the ends stand at this moment.

An estimate: ends are extended and holds released sooner. Amounts are of the pool, so where cards are cut on demand the
place that becomes free may not be one place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from allocations.capacity.counted import draw_of
from allocations.capacity.snapshot import RESERVING, Stock
from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.tenants.models import Team
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.models import Limit


@dataclass(frozen=True)
class Freed:
    """At ``at`` so many slices of the offering come free; ``allocation`` is whose end it is."""

    at: datetime
    allocation: Allocation


def ends(now: datetime) -> list[Freed]:
    """When what is there ends, the first first: what is released or late already, now. One query."""
    rows = Allocation.objects.filter(ended_at=None).select_related("project__team", "offering__pool")
    found = [Freed(now if row.phase == Phase.RELEASING else max(now, row.ends_at), row) for row in rows]
    return sorted(found, key=lambda one: (one.at, one.allocation.pk))


def after(stock: Stock, team: Team, offering: Offering, count: int, among: Iterable[Freed]) -> Freed | None:
    """The end after which ``team`` could have ``count`` slices; None when it can now, or none of the ends suffices.

    1. Slices of the fleet come free with every end in the pool of what is held; of the team's quota with the team's own
       ends, and with others' in the same tree of departments where the team may borrow.
    2. So is what is left of the limits that the portal counts, with the ends of what counts against them.
    3. The first end after which all suffice is the answer.
    """
    per_slice = counting.draw(offering, 1).pools[offering.pool_id]
    quota = stock.quota(team, offering)
    borrows = quota.bound is None or quota.bound > quota.own
    bounds = _bounds(stock, team, offering)
    free = Fraction(stock.capacity(offering).free)
    left = Fraction(quota.left)

    def suffices() -> bool:
        return count <= min(free, left) and all(bound.has_room(count) for bound in bounds)

    if not per_slice or suffices():
        return None
    for end in among:
        row = end.allocation
        drawn = draw_of(stock, row)
        for bound in bounds:
            if _counts(stock, bound.limit, row):
                bound.left += drawn.of(bound.limit)
        reserved = drawn.pools.get(offering.pool_id, Fraction(0)) / per_slice if row.phase in RESERVING else Fraction(0)
        if row.phase != Phase.STARTING:  # which ``free`` still has
            free += reserved
        if row.project.team_id == team.pk or (borrows and stock.lend_to_each_other(team, row.project.team)):
            left = min(left + reserved, Fraction(quota.most))
        if suffices():
            return end
    return None


@dataclass
class _Bound:
    """A limit that the portal counts, and what is left of it in its unit, of which a slice takes ``per_slice``."""

    limit: Limit
    per_slice: Fraction
    left: Fraction

    def has_room(self, count: int) -> bool:
        return count * self.per_slice <= self.left


def _bounds(stock: Stock, team: Team, offering: Offering) -> list[_Bound]:
    """The counted limits that bind a slice of the offering for the team."""
    one = counting.draw(offering, 1)
    limits = [limit for limit in stock.limits() if stock.binds(limit, team) and one.of(limit)]
    return [_Bound(limit, one.of(limit), limit.nominal - limit.units_used) for limit in limits]


def _counts(stock: Stock, limit: Limit, row: Allocation) -> bool:
    """Whether the allocation counts against the limit."""
    whose = limit.project_id in (None, row.project_id) and limit.user_id in (None, row.requested_by_id)
    return whose and stock.binds(limit, row.project.team)
