"""Estimates when enough capacity is released for a request, from the ends of allocations as they are now.

An estimate: allocations may be extended or released early, and one that is not held yet counts its hours as if it were
held now, or at its later start. Amounts are of the pool, so on GPUs partitioned on demand
the free capacity may be fragmented.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from allocations.capacity.counted_limits import CountedLimits
from allocations.capacity.headroom import Availability
from allocations.domain.phases import RESERVING, Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core.reading import Prepared, Rows, any_of, read_tables
from portal.tenants.models import Project, Team
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.models import Limit


@dataclass(frozen=True)
class ExpectedRelease:
    """The end of an allocation, expected at ``at``."""

    at: datetime
    allocation: Allocation


COLUMNS = (
    *("name", "phase", "count", "claim", "project", "offering", "requested_by"),
    *("created_at", "starts_at", "hours", "ends_at", "give_up_at", "held_before", "held_until", "held_since"),
)
"""What a forecast needs of an allocation: of a full fleet there are thousands."""


def _relations(projects: Any) -> list[Rows]:
    of_rows = Project.objects.filter(pk__in=any_of(projects, "bigint"))
    return [Rows(of_rows.select_related("team").order_by()), Rows(Offering.objects.select_related("pool").order_by())]


_RELATIONS = Prepared(_relations, projects=(-1,))


def expected_releases(now: datetime) -> list[ExpectedRelease]:
    """Return the expected ends of all allocations, in order: now if one is releasing or overdue. Two queries."""
    rows = list(Allocation.objects.filter(ended_at=None).only(*COLUMNS).order_by())
    relations = _RELATIONS.of(projects=list({row.project_id for row in rows}))
    projects, offerings = ({one.pk: one for one in found} for found in read_tables(*relations))
    for row in rows:
        row.project, row.offering = projects[row.project_id], offerings[row.offering_id]
    found = [
        ExpectedRelease(now if row.phase == Phase.RELEASING else spec_of_row.time(row).expected_end(now), row)
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.at, one.allocation.pk))


def earliest_fit(
    availability: Availability, team: Team, offering: Offering, count: int, releases: Iterable[ExpectedRelease]
) -> ExpectedRelease | None:
    """Return the release after which ``team`` could have ``count`` slices; None if it can now, or if none suffices.

    Each release in the pool adds free slices to the fleet. It adds quota if it is the team's own, or if the team may
    borrow from the other one, and room below the counted limits that the allocation counts against. The result is the
    first release after which all three suffice.
    """
    per_slice = counting.demand(offering, 1).pools[offering.pool_id]
    quota = availability.quotas.of_team(team, offering)
    borrows = quota.bound is None or quota.bound > quota.own
    bounds = _bounds(availability.limits, team, offering)
    free = Fraction(availability.fleet.capacity(offering).free)
    left = Fraction(quota.left)

    def suffices() -> bool:
        return count <= min(free, left) and all(bound.has_room(count) for bound in bounds)

    if not per_slice or suffices():
        return None
    for release in releases:
        row = release.allocation
        if not bounds and row.claim is None and row.offering.pool_id != offering.pool_id:
            continue  # it releases nothing of the pool
        demand = availability.index.demand_of(row)
        for bound in bounds:
            if _counts(availability.limits, bound.limit, row):
                bound.left += demand.in_unit_of(bound.limit)
        reserved = (
            demand.pools.get(offering.pool_id, Fraction(0)) / per_slice if row.phase in RESERVING else Fraction(0)
        )
        if row.phase != Phase.STARTING:  # slices of a starting allocation still count as free
            free += reserved
        if row.project.team_id == team.pk or (
            borrows and availability.quotas.lend_to_each_other(team, row.project.team)
        ):
            left = min(left + reserved, Fraction(quota.max_quota))
        if suffices():
            return release
    return None


def next_start(row: Allocation, now: datetime) -> ExpectedRelease | None:
    """Return the release after which a queued allocation could start; None if it could now, or if none suffices.

    Needs its project, team, offering and person. A custom claim has no forecast, nor has one that starts later.
    """
    if row.claim is not None:
        return None
    team = row.project.team
    availability = Availability([team], user=row.requested_by, project=row.project)
    releases = expected_releases(now)
    # What it counts against the portal's limits itself is no obstacle to it.
    own = [ExpectedRelease(now, one.allocation) for one in releases if one.allocation.pk == row.pk]
    others = [one for one in releases if one.allocation.pk != row.pk]
    found = earliest_fit(availability, team, row.offering, row.count, [*own, *others])
    return None if found is None or found.allocation.pk == row.pk else found


@dataclass
class _LimitHeadroom:
    """A counted limit and what is left of it, in its unit; a slice uses ``per_slice``."""

    limit: Limit
    per_slice: Fraction
    left: Fraction

    def has_room(self, count: int) -> bool:
        return count * self.per_slice <= self.left


def _bounds(limits: CountedLimits, team: Team, offering: Offering) -> list[_LimitHeadroom]:
    """Return the counted limits on the offering that apply to the team."""
    one = counting.demand(offering, 1)
    applying = [limit for limit in limits.rows if limits.applies(limit, team) and one.in_unit_of(limit)]
    return [_LimitHeadroom(limit, one.in_unit_of(limit), limit.nominal - limit.units_used) for limit in applying]


def _counts(limits: CountedLimits, limit: Limit, row: Allocation) -> bool:
    """Return whether the allocation counts against the limit."""
    is_holder = limit.project_id in (None, row.project_id) and limit.user_id in (None, row.requested_by_id)
    return is_holder and limits.applies(limit, row.project.team)
