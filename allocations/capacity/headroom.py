"""The headroom of teams: the least of the fleet's free capacity, their remaining quota and remaining limits."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from allocations.capacity.counted_limits import CountedLimits
from allocations.capacity.fleet import Fleet
from allocations.capacity.offering_index import OfferingIndex
from allocations.capacity.quota_usage import QuotaUsage
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.capacity.usage import CurrentUsage
from allocations.domain.admission import AdmissionInput, Fact
from portal.core.reading import Batch
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand

NO_FACTS: Mapping[Fact[Any], Any] = MappingProxyType({})


@dataclass(frozen=True)
class TeamHeadroom:
    """A team's headroom of one offering, in slices.

    ``limit`` is its guaranteed quota, ``max_quota`` that plus all that it could ever borrow. ``can_borrow`` is the
    part of ``can_get_now`` that it would borrow.
    """

    limit: int
    used: int
    can_get_now: int
    can_borrow: int = 0
    max_quota: int = 0


class Availability:
    """Capacity, quotas and counted limits for some teams, and for a user and a project in them. All but devices is read
    in one query when it is first needed, with the rest of the ``batch``.

    With ``cliques``, NVLink cliques are read with the devices. With ``fleet`` the capacity is as it was read, and so is
    the usage of a new one; what decides has none.
    """

    def __init__(
        self,
        teams: Iterable[Team] = (),
        *,
        user: User | None = None,
        project: Project | None = None,
        cliques: bool = False,
        index: OfferingIndex | None = None,
        batch: Batch | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        batch = batch or Batch()
        usage = fleet.usage if fleet and fleet.is_new else CurrentUsage(fleet.index if fleet else index, batch)
        self.usage = usage
        self.index: OfferingIndex = usage.index
        self.snapshot = CapacitySnapshot(usage, cliques=cliques)
        self.fleet: Fleet | CapacitySnapshot = fleet or self.snapshot
        self.quotas = QuotaUsage(usage, batch)
        self.limits = CountedLimits(self.quotas, list(teams), user=user, project=project, batch=batch)

    def headroom(self, team: Team, offering: Offering) -> TeamHeadroom:
        """Return the team's headroom of the offering."""
        quota = self.quotas.of_team(team, offering)
        counted = self.limits.in_slices(team, counting.demand(offering, 1))
        remaining = [limit.limit - limit.used for limit in counted]
        can_get_now = max(0, min([self.fleet.capacity(offering).free, quota.left, *remaining]))
        return TeamHeadroom(
            limit=quota.own,
            used=self.quotas.reserved(team, offering),
            can_get_now=can_get_now,
            can_borrow=max(0, can_get_now - quota.own_left),
            max_quota=quota.max_quota,
        )

    def admission_input(
        self,
        project: Project,
        offering: Offering,
        count: int,
        *,
        at: datetime | None = None,
        facts: Mapping[Fact[Any], Any] = NO_FACTS,
        spread: bool = False,
        constraints: Collection[str] = (),
        priority: str = "normal",
        per_slice: ResourceDemand | None = None,
    ) -> AdmissionInput:
        """Return the input of the admission rules for a request of ``count`` slices, without what is free of named
        devices (``with_free_devices``).

        ``per_slice`` is the demand of one slice of a custom claim; None for other offerings.
        """
        team = project.team
        capacity, quota = self.fleet.capacity(offering), self.quotas.of_team(team, offering)
        return AdmissionInput(
            offering=offering.key,
            pool=offering.pool.key,
            kind=offering.kind,
            path=offering.flavor.path,
            count=count,
            total=capacity.total,
            free=capacity.free,
            per_node=offering.per_node,
            quota=quota.max_quota,
            used=max(0, quota.max_quota - quota.left),
            own=quota.bound,
            team=team.slug,
            priority=priority,
            department=team.department.slug,
            counted_limits=tuple(self.limits.in_slices(team, per_slice or counting.demand(offering, 1))),
            hidden=not offering.is_offered,
            at=at,
            facts=facts,
            spread=spread,
            constraints=tuple(constraints),
            max_colocated=self.snapshot.max_colocated(offering, constraints, spread=spread, empty=True)
            if constraints
            else None,
            one_at_a_time=offering.one_at_a_time,
            replicas=offering.replicas,
            sharing=offering.sharing,
        )

    def with_free_devices(self, request: AdmissionInput, offering: Offering) -> AdmissionInput:
        """Return the input with what one request can get of the devices that are free now.

        Rules do not need it: single devices are read for who wants to know whether a request fits now.
        """
        free = self.snapshot.max_colocated(offering, request.constraints, spread=request.spread)
        return replace(request, free_colocated=free)
