"""The limits that the portal counts, and what they leave to a team, a project and a person."""

from collections.abc import Collection
from fractions import Fraction

from allocations.domain.admission import CountedLimit
from portal.tenants.models import Project, Team, User
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand
from quotas.limits.models import Limit
from quotas.limits.selectors import QuotaSnapshot


class CountedLimits:
    """The limits on requests in these teams: the teams', their departments', and those of ``project`` and ``user``."""

    def __init__(
        self,
        quotas: QuotaSnapshot,
        teams: Collection[Team],
        *,
        user: User | None = None,
        project: Project | None = None,
    ) -> None:
        self._quotas = quotas
        self.rows: list[Limit] = list(counting.applicable_limits(teams, quotas.above(teams), user, project))

    def applies(self, limit: Limit, team: Team) -> bool:
        """Return whether the limit is the team's, a department's above it, or of a member or project of the team."""
        is_below = limit.department_id is None or limit.department_id in self._quotas.above([team])
        return limit.team_id in (None, team.pk) and is_below

    def in_slices(self, team: Team, per_slice: ResourceDemand) -> list[CountedLimit]:
        """Return the limits that apply to the team, in slices that each take ``per_slice``."""
        found = []
        for limit in self.rows:
            amount = per_slice.in_unit_of(limit)
            if amount and self.applies(limit, team):
                most = limit.nominal // amount
                left = max(Fraction(0), limit.nominal - limit.units_used) // amount
                used = max(most - left, limit.units_used // amount)  # more than it has, where it was lowered
                found.append(CountedLimit(limit.dimension, limit.holder, most, used))
        return found
