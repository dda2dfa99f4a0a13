"""Estimates when enough capacity is released for a request, from the ends of allocations as they are now.

An estimate: allocations may be extended or released early, and one that is not held yet counts its hours as if it were
held now, or at its later start. Amounts are of the pool, so on GPUs partitioned on demand
the free capacity may be fragmented.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from operator import attrgetter
from uuid import UUID

from allocations.capacity.counted_limits import CountedLimits
from allocations.capacity.headroom import Availability
from allocations.capacity.offering_index import OfferingIndex
from allocations.domain.phases import RESERVING, Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.tenants.models import Team
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand
from quotas.limits.models import Limit

COLUMNS = ("id", "name", "phase", "count", "claim", "offering_id", "project_id", "project__team", "requested_by_id")
OF_TIME = ("starts_at", "created_at", "hours", "ends_at", "give_up_at", "held_before", "held_until", "held_since")
"""What ``spec_of_row.time`` reads of an allocation."""


@dataclass(frozen=True)
class ExpectedRelease:
    """The end of an allocation, expected at ``at``, and what it gives back."""

    at: datetime
    id: UUID
    name: str
    phase: Phase
    team: Team
    project: int
    person: int
    demand: ResourceDemand


def expected_releases(now: datetime, index: OfferingIndex) -> list[ExpectedRelease]:
    """Return the expected ends of all allocations, in order: now if one is releasing or overdue. Two queries.

    Columns are read, not models, which take ten times as long in a full fleet. An offering that is newer than the index
    is left out.
    """
    rows = Allocation.objects.filter(ended_at=None).order_by().values_list(*COLUMNS, *OF_TIME, named=True)
    live = list(rows)
    teams = {team.pk: team for team in Team.objects.all()}
    of_slices = cache(counting.demand)
    found = []
    for row in live:
        offering = index.by_id(row.offering_id)
        if offering is None:
            continue
        at = now if row.phase == Phase.RELEASING else spec_of_row.time(row).expected_end(now)
        found.append(
            ExpectedRelease(
                at=at,
                id=row.id,
                name=row.name,
                phase=Phase(row.phase),
                team=teams[row.project__team],
                project=row.project_id,
                person=row.requested_by_id,
                demand=index.demand(offering, row.count, row.claim) if row.claim else of_slices(offering, row.count),
            )
        )
    return sorted(found, key=attrgetter("at", "id"))


def earliest_fit(
    availability: Availability, team: Team, offering: Offering, count: int, releases: Iterable[ExpectedRelease]
) -> ExpectedRelease | None:
    """Return the release after which ``team`` could have ``count`` slices; None if it can now, or if none suffices.

    Each release in the pool adds free slices to the fleet. It adds quota if it is the team's own, or if the team may
    borrow from the other one, and room below the counted limits that the allocation counts against. The result is the
    first release after which all three suffice.
    """
    pool = offering.pool_id
    per_slice = counting.demand(offering, 1).pools[pool]
    quota = availability.quotas.of_team(team, offering)
    borrows = quota.bound is None or quota.bound > quota.own
    bounds = _bounds(availability.limits, team, offering)
    free = Fraction(availability.fleet.capacity(offering).free)
    left = Fraction(quota.left)

    def suffices() -> bool:
        return count <= min(free, left) and all(bound.has_room(count) for bound in bounds)

    if not per_slice or suffices():
        return None

    @cache
    def lends(other: Team) -> bool:
        return other == team or (borrows and availability.quotas.lend_to_each_other(team, other))

    for release in releases:
        for bound in bounds:
            if _counts(availability.limits, bound.limit, release):
                bound.left += release.demand.in_unit_of(bound.limit)
        if release.phase in RESERVING and (units := release.demand.pools.get(pool)):
            reserved = units / per_slice
            if release.phase != Phase.STARTING:  # slices of a starting allocation still count as free
                free += reserved
            if lends(release.team):
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
    releases = expected_releases(now, availability.index)
    # What it counts against the portal's limits itself is no obstacle to it.
    own = [replace(one, at=now) for one in releases if one.id == row.pk]
    others = [one for one in releases if one.id != row.pk]
    found = earliest_fit(availability, team, row.offering, row.count, [*own, *others])
    return None if found is None or found.id == row.pk else found


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


def _counts(limits: CountedLimits, limit: Limit, release: ExpectedRelease) -> bool:
    """Return whether the allocation counts against the limit."""
    is_holder = limit.project_id in (None, release.project) and limit.user_id in (None, release.person)
    return is_holder and limits.applies(limit, release.team)
