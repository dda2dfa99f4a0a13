"""Many people at once, who ask by both paths and give back, through the services."""

from collections.abc import Iterator
from itertools import cycle, islice

from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.tenants.models import Project, User
from tests.support.cluster.asking import ask

MIX = (
    "t4/shared",
    "h100/whole",
    "a100/mig-1g.10gb",
    "t4/shared",
    "l40s/whole",
    "a100/mig-2g.20gb",
    "t4/shared",
    "h100/whole",
    "a100/mig-3g.40gb",
    "t4/shared",
)
"""What is asked, over and over. A hundred of it are more than the demo's quotas hold, so some have to queue."""


class Crowd:
    """Everything that one run of fault tests asked for, in projects of its own."""

    def __init__(self, people: list[tuple[User, Project]]) -> None:
        self._people = people
        self._turns: Iterator[tuple[tuple[User, Project], str]] = zip(cycle(people), _spread(len(people)), strict=False)
        self.projects = [project for _, project in people]
        self.hidden_s = 0.0
        """For how long nobody may have watched, in the worst fault so far."""

    def requests(self, number: int) -> list[tuple[User, Project, str]]:
        """Who asks for what in the next ``number`` requests."""
        return [(user, project, offering) for (user, project), offering in islice(self._turns, number)]

    def ask(self, number: int) -> list[Allocation]:
        return [ask(user, project, offering) for user, project, offering in self.requests(number)]

    def live(self) -> list[Allocation]:
        """What nobody has given back, oldest first."""
        rows = Allocation.objects.filter(project__in=self.projects, desired=Allocation.Desired.HELD)
        return list(rows.select_related("requested_by", "project__team").order_by("created_at", "id"))

    def release(self, rows: list[Allocation]) -> None:
        for row in rows:
            services.release(row.requested_by, row)

    def in_flight(self) -> int:
        """How many wait for something to happen: asked and not held, or given back and not gone."""
        return Allocation.objects.filter(project__in=self.projects, ended_at=None).exclude(phase=Phase.ACTIVE).count()


def _spread(people: int) -> Iterator[str]:
    """Each offering of MIX once by everyone before the next."""
    return (offering for offering in cycle(MIX) for _ in range(people))
