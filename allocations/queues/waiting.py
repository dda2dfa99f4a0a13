"""What waits in the queues of several teams, in the portal's order, by priority and then by age."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from allocations.queues import entries as queue_entries
from allocations.queues.entries import Entry
from portal.core import clock
from portal.tenants.models import Team

LONG = timedelta(hours=1)


class WaitingEntry(NamedTuple):
    """An entry, and the slug of the team in whose queue it waits."""

    team: str
    entry: Entry


@dataclass(frozen=True)
class Waiting:
    """``by_team`` is how many wait by team, without teams in whose queue nothing waits, and ``long_by_team`` how many
    of them have waited longer than LONG; ``first`` are the first.
    """

    by_team: Mapping[str, int] = field(default_factory=dict)
    long_by_team: Mapping[str, int] = field(default_factory=dict)
    first: Sequence[WaitingEntry] = ()

    @property
    def total(self) -> int:
        return sum(self.by_team.values())


def of_teams(teams: Iterable[Team], size: int) -> Waiting:
    """Return what waits in these teams' queues, with the first ``size`` entries in full; a fixed number of queries."""
    slugs = {team.pk: team.slug for team in teams}
    if not slugs:
        return Waiting()
    by_team, long, first = queue_entries.first_of_teams(slugs, size, clock.now() - LONG)
    entries = queue_entries.full_entries(first) if first else {}
    return Waiting(
        by_team=_most_first(by_team, slugs),
        long_by_team=_most_first(long, slugs),
        first=[WaitingEntry(slugs[one.team], entries[one.id]) for one in first if one.id in entries],
    )


def _most_first(counted: Mapping[int, int], slugs: Mapping[int, str]) -> dict[str, int]:
    found = {slugs[team]: number for team, number in counted.items()}
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))
