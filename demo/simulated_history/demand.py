"""Who wants which slices when in a simulated history. The random numbers are the caller's.

Development is by day, training by day and night, batches of Jobs at night, and little of all on weekends. Some forget
to release what they held. The last team in order of names wants more in the second half.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from random import Random

from demo.simulated_history.model import ProjectMembers, Slice, World
from quotas.metering.hours import DAY, day_of

HOUR_S = 3600
SATURDAY = 5
WEEKEND_PART = 0.15
GPUS_OF_A_TEAM = 20
"""Fleets with more GPUs for each team are used more, in proportion."""
SERVICES = 2
"""How many models a project for training serves."""
STRANGERS = (("ci", "Job"), ("monitoring", "DaemonSet"), ("legacy-models", "StatefulSet"), ("sandbox", ""))
"""Namespaces and controllers of pods and claims without an allocation."""


class Purpose(Enum):
    HOLD = "hold"
    JOB = "job"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True)
class Demand:
    """That ``count`` slices are wanted at ``at`` for a time, in ``pods`` pods; given up after ``patience``.

    ``owner`` is the namespace and kind of controller of what is unmanaged, which has no project.
    """

    at: datetime
    purpose: Purpose
    slice: Slice
    count: int
    lasts: timedelta
    patience: timedelta
    project: ProjectMembers | None = None
    member: str = ""
    pods: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: tuple[str, str] = ("", "")


def draw(world: World, random: Random) -> list[Demand]:
    """Return all that is wanted in the history, by time."""
    found: list[Demand] = []
    teams = sorted({one.team for one in world.projects})
    scale = max(1.0, sum(world.gpus_by_flavor.values()) / (GPUS_OF_A_TEAM * max(1, len(teams))))
    middle = world.start + (world.until - world.start) / 2
    day = day_of(world.start)
    while day < world.until:
        for project in world.projects:
            grows = len(teams) > 1 and project.team == teams[-1]
            factor = scale * (1.0 if not grows else 0.6 if day < middle else 1.5)
            found += _of_project(world, random, project, day, factor)
        if random.random() < 0.35 * scale:
            found += _unmanaged(world, random, day)
        day += DAY
    for project in world.projects:
        for _ in range(SERVICES):
            found += _service(world, random, project)
    return sorted((one for one in found if world.start <= one.at < world.until), key=lambda one: one.at)


def _of_project(
    world: World, random: Random, project: ProjectMembers, day: datetime, factor: float
) -> Iterator[Demand]:
    if not project.members:
        return
    is_workday = day.weekday() < SATURDAY
    factor *= 1.0 if is_workday else WEEKEND_PART
    if project.slug.endswith("-dev"):
        for _ in range(_count(random, 5.0 * factor)):
            yield from _notebook(world, random, project, day)
        return
    for _ in range(_count(random, 4.0 * factor)):
        yield from _training(world, random, project, day)
    for _ in range(_count(random, 2.5 * factor)):
        yield from _evaluation(world, random, project, day)
    for _ in range(_count(random, 1.5 * factor)):
        yield from _batch(world, random, project, day)


def _notebook(world: World, random: Random, project: ProjectMembers, day: datetime) -> Iterator[Demand]:
    is_forgotten = random.random() < 0.08
    lasts = random.uniform(20, 70) if is_forgotten else random.uniform(1.5, 9)
    at = _at(random, day, *random.choice(((8, 11), (13, 16))))
    yield from _hold(world, random, project, at, _is_part, (1, 1, 2, 3), lasts, 2, {"activity": "notebook"})


def _training(world: World, random: Random, project: ProjectMembers, day: datetime) -> Iterator[Demand]:
    lasts = min(90.0, random.lognormvariate(2.3, 0.7))
    model = random.choice(("detector", "encoder", "segmenter", "translator"))
    labels = {"activity": "training", "model": model}
    yield from _hold(world, random, project, _at(random, day, 7, 21), _is_whole, (1, 2, 2, 4, 4), lasts, 8, labels)


def _evaluation(world: World, random: Random, project: ProjectMembers, day: datetime) -> Iterator[Demand]:
    lasts = random.uniform(0.5, 5)
    labels = {"activity": "evaluation"}
    yield from _hold(world, random, project, _at(random, day, 9, 19), lambda one: True, (1, 1, 2), lasts, 4, labels)


def _service(world: World, random: Random, project: ProjectMembers) -> Iterator[Demand]:
    """Yield what serves a model all the time, deployed anew every one or two weeks."""
    if project.slug.endswith("-dev"):
        return
    at = world.start + timedelta(hours=random.uniform(8, 30))
    while at < world.until:
        days = random.uniform(6, 13)
        yield from _hold(world, random, project, at, _is_part, (1, 2, 4), days * 24, 24, {"activity": "serving"})
        at += timedelta(days=days, minutes=random.uniform(3, 40))


def _batch(world: World, random: Random, project: ProjectMembers, day: datetime) -> Iterator[Demand]:
    """Yield a queued Job of the evening."""
    chosen = _pick(world, random, lambda one: _is_whole(one) and bool(one.resource))
    pods, per_pod = random.choice((1, 2, 2, 3)), random.choice((1, 1, 2))
    if chosen and (count := min(pods * per_pod, _most(world, project.team, chosen)) // per_pod * per_pod):
        lasts, patience = timedelta(hours=random.uniform(1.5, 9)), timedelta(hours=14)
        at, pods, labels = _at(random, day, 17, 23), count // per_pod, {"activity": "batch"}
        yield Demand(at, Purpose.JOB, chosen, count, lasts, patience, project, "", pods, labels)


def _unmanaged(world: World, random: Random, day: datetime) -> Iterator[Demand]:
    chosen = _pick(world, random, _is_whole) or _pick(world, random, lambda one: True)
    if chosen:
        lasts, count = timedelta(hours=random.uniform(2, 30)), random.choice((1, 1, 2)) if chosen.resource else 1
        at, owner = _at(random, day, 6, 22), random.choice(STRANGERS)
        yield Demand(at, Purpose.UNMANAGED, chosen, count, lasts, timedelta(hours=3), owner=owner)


def _hold(
    world: World,
    random: Random,
    project: ProjectMembers,
    at: datetime,
    wanted: Callable[[Slice], bool],
    counts: Sequence[int],
    lasts_h: float,
    patience_h: float,
    labels: Mapping[str, str],
) -> Iterator[Demand]:
    chosen = _pick(world, random, wanted) or _pick(world, random, lambda one: True)
    member = random.choice((*project.members, *project.members[:2]))
    count = random.choice(counts)
    lasts, patience = timedelta(seconds=int(lasts_h * HOUR_S)), timedelta(hours=patience_h)
    if chosen and (count := min(count, _most(world, project.team, chosen))):
        yield Demand(at, Purpose.HOLD, chosen, count, lasts, patience, project, member, labels=labels)


def _pick(world: World, random: Random, wanted: Callable[[Slice], bool]) -> Slice | None:
    """Return a slice: first a flavor is drawn, the likelier the more GPUs it has, then one of its slices."""
    found = [one for one in world.slices if wanted(one)]
    if not found:
        return None
    flavors = sorted({one.flavor for one in found})
    [flavor] = random.choices(flavors, [world.gpus_by_flavor[name] for name in flavors])
    return random.choice([one for one in found if one.flavor == flavor])


def _most(world: World, team: str, one: Slice) -> int:
    """Return how many of the slice the team's quota allows at once."""
    nominal, unit = world.quotas.get((team, one.pool), 0), world.pools[one.pool]
    return min((nominal * unit.get(name, 0) // amount for name, amount in one.requests.items() if amount), default=0)


def _is_whole(one: Slice) -> bool:
    return one.kind == "whole"


def _is_part(one: Slice) -> bool:
    return one.gpu_share < 1


def _count(random: Random, mean: float) -> int:
    """Return how many there are today: the mean, rounded up or down at random, and at times one more or less."""
    return max(0, int(mean + random.random()) + random.choice((-1, 0, 0, 1)) * (mean >= 1))


def _at(random: Random, day: datetime, first_hour: float, last_hour: float) -> datetime:
    return day + timedelta(seconds=random.randrange(int(first_hour * HOUR_S), int(last_hour * HOUR_S)))
