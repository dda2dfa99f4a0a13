"""The headroom of teams: the least of the fleet's free capacity, their remaining quota and remaining limits."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from allocations.capacity.counted_limits import CountedLimits
from allocations.capacity.offering_index import OfferingIndex
from allocations.capacity.quota_usage import QuotaUsage
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.capacity.usage import CurrentUsage
from allocations.domain.admission import AdmissionInput, AllocationLimit
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand


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
    """Capacity, quotas and counted limits for some teams, and for a user and a project in them. Each is read once.

    With ``cliques``, NVLink cliques are read too.
    """

    def __init__(
        self,
        teams: Iterable[Team] = (),
        *,
        user: User | None = None,
        project: Project | None = None,
        cliques: bool = False,
        index: OfferingIndex | None = None,
    ) -> None:
        usage = CurrentUsage(index)
        self.index: OfferingIndex = usage.index
        self.fleet = CapacitySnapshot(usage, cliques=cliques)
        self.quotas = QuotaUsage(usage)
        self.limits = CountedLimits(self.quotas.quotas, list(teams), user=user, project=project)

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
        allocation_limits: Collection[AllocationLimit] = (),
        spread: bool = False,
        constraints: Collection[str] = (),
        per_slice: ResourceDemand | None = None,
    ) -> AdmissionInput:
        """Return the input of the admission rules for a request of ``count`` slices.

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
            department=team.department.slug,
            counted_limits=tuple(self.limits.in_slices(team, per_slice or counting.demand(offering, 1))),
            hidden=not offering.is_offered,
            allocation_limits=tuple(allocation_limits),
            spread=spread,
            constraints=tuple(constraints),
            max_colocated=self.fleet.max_colocated(offering, constraints, spread=spread, empty=True),
            free_colocated=self.fleet.max_colocated(offering, constraints, spread=spread),
            one_at_a_time=offering.one_at_a_time,
            replicas=offering.replicas,
            sharing=offering.sharing,
        )
