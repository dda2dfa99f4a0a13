"""The limits that the portal counts itself, for a team, a project and a person."""

from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any

from allocations.capacity.quota_usage import QuotaUsage
from allocations.domain.admission import CountedLimit
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Batch, Part, Rows
from portal.tenants.models import Project, Team, User
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand
from quotas.limits.models import Limit


def _limits(teams: tuple[int], user: int, project: int | None = None) -> list[Rows]:
    holder = None if project is None else Project(pk=project)
    rows = counting.applicable_limits(teams, None, User(pk=user), holder)
    return [Rows(rows.select_related(None))]


_OF_PERSON = QueryTemplate(_limits, teams=list[int], user=int)
_IN_PROJECT = QueryTemplate(_limits, teams=list[int], user=int, project=int)
"""What a request of a person in a project reads."""


def _part(teams: Collection[Team], user: User | None, project: Project | None) -> Part:
    ids = [team.pk for team in teams]
    if user is None:
        return Rows(counting.applicable_limits(ids, None, user, project))
    holders: dict[str, Any] = {"teams": ids, "user": user.pk}
    return _OF_PERSON.of(**holders)[0] if project is None else _IN_PROJECT.of(**holders, project=project.pk)[0]


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
        self._usage, self._teams, self._user, self._project = usage, teams, user, project
        self._read = (batch or Batch()).add(_part(teams, user, project))

    @cached_property
    def rows(self) -> list[Limit]:
        """The limits with their names, in the order in which they are locked."""
        departments = self._usage.quotas.above(self._teams)
        found = [row for row in self._read() if row.department_id is None or row.department_id in departments]
        if found:
            self._set_relations(found)
        return found

    def _set_relations(self, rows: Iterable[Limit]) -> None:
        """Set holder and scope of each, which were read beside them: as joins their planning takes longest of all."""
        quotas, offerings = self._usage.quotas, self._usage.index.offerings()
        known: dict[str, Iterable[Any]] = {
            "department": quotas.departments,
            "team": quotas.teams,
            "project": [self._project] if self._project else [],
            "user": [self._user] if self._user else [],
            "pool": [one.pool for one in offerings],
            "offering": offerings,
            "flavor": [one.flavor for one in offerings],
        }
        for name, objects in known.items():
            by_id = {one.pk: one for one in objects}
            for row in rows:
                if one := by_id.get(getattr(row, f"{name}_id")):
                    setattr(row, name, one)

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
