"""Many people who request allocations on both backends and release them, through the services."""

from collections.abc import Iterator
from itertools import cycle, islice

from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import request_slices

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
"""Offerings that are requested in turn. A hundred requests exceed the demo's quotas, so some have to queue."""


class Crowd:
    """All requests of one run of fault tests, in projects of its own."""

    def __init__(self, people: list[tuple[User, Project]]) -> None:
        self._people = people
        self._turns: Iterator[tuple[tuple[User, Project], str]] = zip(cycle(people), _spread(len(people)), strict=False)
        self.projects = [project for _, project in people]
        self.hidden_s = 0.0
        """The longest time without a working watch, in the worst fault so far."""
        self.unwatched: list[tuple[float, float]] = []
        """When no watch may have worked, in seconds since the epoch."""

    def requests(self, number: int) -> list[tuple[User, Project, str]]:
        """Return person and offering of the next ``number`` requests."""
        return [(user, project, offering) for (user, project), offering in islice(self._turns, number)]

    def request_slices(self, number: int) -> list[Allocation]:
        return [request_slices(user, project, offering) for user, project, offering in self.requests(number)]

    def live(self) -> list[Allocation]:
        """Return the allocations that nobody released, oldest first."""
        rows = Allocation.objects.filter(project__in=self.projects, desired=Allocation.Desired.HELD)
        return list(rows.select_related("requested_by", "project__team").order_by("created_at", "id"))

    def release(self, rows: list[Allocation]) -> None:
        for row in rows:
            services.release(row.requested_by, row)

    def in_flight(self) -> int:
        """Return how many are in transition: requested and not held, or released and not gone."""
        return Allocation.objects.filter(project__in=self.projects, ended_at=None).exclude(phase=Phase.ACTIVE).count()


def _spread(people: int) -> Iterator[str]:
    """Order the requests so that everyone requests an offering of MIX before the next one."""
    return (offering for offering in cycle(MIX) for _ in range(people))
