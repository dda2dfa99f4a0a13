"""The limits that the portal counts itself, for a team, a project and a person."""

from collections.abc import Collection
from fractions import Fraction
from functools import cached_property

from allocations.capacity.quota_usage import QuotaUsage
from allocations.domain.admission import CountedLimit
from portal.core.reading import Batch, Part, Prepared, Rows
from portal.tenants.models import Project, Team, User
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand
from quotas.limits.models import Limit


def _of_one(team: int, user: int, project: int) -> list[Rows]:
    return [Rows(counting.applicable_limits([Team(pk=team)], None, User(pk=user), Project(pk=project)))]


_OF_ONE = Prepared(_of_one, team=-1, user=-2, project=-3)
"""What a request of a person in a project reads."""


def _part(teams: Collection[Team], user: User | None, project: Project | None) -> Part:
    if len(teams) == 1 and user is not None and project is not None:
        [team] = teams
        return _OF_ONE.of(team=team.pk, user=user.pk, project=project.pk)[0]
    return Rows(counting.applicable_limits(teams, None, user, project))


class CountedLimits:
    """The limits on requests in some teams: those of the teams and their departments, of ``project`` and ``user``."""

    def __init__(
        self,
        usage: QuotaUsage,
        teams: Collection[Team],
        *,
        user: User | None = None,
        project: Project | None = None,
        batch: Batch | None = None,
    ) -> None:
        self._usage, self._teams = usage, teams
        self._read = (batch or Batch()).add(_part(teams, user, project))

    @cached_property
    def rows(self) -> list[Limit]:
        """The limits with their names, in the order in which they are locked."""
        departments = self._usage.quotas.above(self._teams)
        return [row for row in self._read() if row.department_id is None or row.department_id in departments]

    def applies(self, limit: Limit, team: Team) -> bool:
        """Return whether the limit applies to the team: its own, a department's above it, a member's or a project's."""
        is_below = limit.department_id is None or limit.department_id in self._usage.quotas.above([team])
        return limit.team_id in (None, team.pk) and is_below

    def in_slices(self, team: Team, per_slice: ResourceDemand) -> list[CountedLimit]:
        """Return the limits that apply to the team, in slices that each take ``per_slice``."""
        limits = []
        for limit in self.rows:
            amount = per_slice.in_unit_of(limit)
            if amount and self.applies(limit, team):
                maximum = limit.nominal // amount
                left = max(Fraction(0), limit.nominal - limit.units_used) // amount
                used = max(maximum - left, limit.units_used // amount)  # above the maximum if the limit was lowered
                limits.append(CountedLimit(limit.dimension, limit.holder, maximum, used))
        return limits
