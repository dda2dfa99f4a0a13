"""What waits in the queues of several teams, in the portal's order, by priority and then by age."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from allocations.queues import entries as queue_entries
from allocations.queues.entries import Entry
from portal.tenants.models import Team


class WaitingEntry(NamedTuple):
    """An entry, and the slug of the team in whose queue it waits."""

    team: str
    entry: Entry


@dataclass(frozen=True)
class Waiting:
    """``by_team`` is how many wait by team, without teams in whose queue nothing waits; ``first`` are the first."""

    by_team: Mapping[str, int] = field(default_factory=dict)
    first: Sequence[WaitingEntry] = ()

    @property
    def total(self) -> int:
        return sum(self.by_team.values())


def of_teams(teams: Iterable[Team], size: int) -> Waiting:
    """Return what waits in these teams' queues, with the first ``size`` entries in full; a fixed number of queries."""
    slugs = {team.pk: team.slug for team in teams}
    if not slugs:
        return Waiting()
    by_team, first = queue_entries.first_of_teams(slugs, size)
    counted = {slugs[team]: number for team, number in by_team.items()}
    entries = queue_entries.full_entries(first) if first else {}
    return Waiting(
        by_team=dict(sorted(counted.items(), key=lambda one: (-one[1], one[0]))),
        first=[WaitingEntry(slugs[one.team], entries[one.id]) for one in first if one.id in entries],
    )
