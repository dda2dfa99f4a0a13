"""Draws what happens in a week, in whole seconds from its start. It knows nothing of the portal.

DRA names the GPU of what is held: H100s are divided on demand, each placement a run of the eight memory slices (NVIDIA,
MIG user guide); A30s were divided by an administrator, and leave a quarter; A10s serve claims in quarters. The others
are counted by a device plugin: T4 in quarters by time-slicing, L4 in halves by MPS, A40 as vGPUs, A100 in fixed MIG
layouts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import NamedTuple

HOUR = 3600
DAY = 24 * HOUR
WEEK = 7 * DAY
WEEK_HOURS = WEEK // HOUR
LATE = 40
"""The longest that an event of a Job is on its way, and any event of the week."""
APART = LATE + 5

PROFILES = {
    "": (8, (0,)),
    "1g.10gb": (1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": (2, (0, 2, 4, 6)),
    "2g.20gb": (2, (0, 2, 4)),
    "3g.40gb": (4, (0, 4)),
    "4g.40gb": (4, (0,)),
}
"""Memory slices and possible starts of an instance of an H100; "" is the whole GPU."""
MADE = {"2g.12gb": (2, (0,)), "1g.6gb": (1, (2,))}
"""The instances of each A30, by profile, of four memory slices."""
SHARES = 4
"""Of each A10. A claim has some that adjoin, from ``start`` on: their places tell only which are free."""
HIDDEN = ("1g.10gb", "1g.20gb")
"""Profiles that are held and no longer offered, so that what only they would fit is stranded."""
LAYOUTS = {
    "balanced": {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8},
    "sevenths": {"nvidia.com/mig-1g.10gb": 56},
}
GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
COUNTED = {"l40s": (GPU,), "t4": (SHARED,), "l4": (SHARED,), "a40": (GPU,), "a100": tuple(LAYOUTS["balanced"])}
UNITS = {"l40s": {GPU: 4}, "t4": {SHARED: 16}, "l4": {SHARED: 8}, "a40": {GPU: 4}, "a100": LAYOUTS["balanced"]}
NAMED = ("h100", "a30", "a10")
"""Whose GPUs DRA names."""
NODES = {"l40s": 4, "t4": 1, "l4": 1, "a40": 1, "a100": 2, "h100": 2, "a30": 1, "a10": 1}
GPUS_OF_A_NODE = 4
"""Of NAMED."""


class Device(NamedTuple):
    """A part of a GPU: ``start`` is its first memory slice, or share if it has ``shares``."""

    node: str
    gpu: int
    profile: str
    start: int
    shares: int = 0

    @property
    def mask(self) -> int:
        return ((1 << (self.shares or {**PROFILES, **MADE}[self.profile][0])) - 1) << self.start


class Span(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True)
class Times:
    """When what happens that is not drawn. In ``gaps`` nobody watches, from the beginning of an hour to that of
    another. The team of MOVED_PROJECTS moves to another department when it has ``moved``. The profiles ``hidden`` are
    offered no longer from ``hiding`` on; "" is all of them. An event is up to ``late`` seconds on its way.
    """

    length: int
    gaps: tuple[Span, ...]
    moved: int
    hiding: int
    hidden: tuple[str, ...]
    late: int = LATE

    @property
    def apart(self) -> int:
        return self.late + 5


TIMES = Times(
    length=WEEK,
    gaps=(Span(2 * DAY + 3 * HOUR, 2 * DAY + 5 * HOUR), Span(5 * DAY + 7 * HOUR, 5 * DAY + 8 * HOUR)),
    moved=3 * DAY + 10 * HOUR,
    hiding=3 * DAY + 14 * HOUR + 1234,
    hidden=("2g.20gb",),
)
PROJECTS = 4
MOVED_PROJECTS = (0, 1)
PRICES = {"h100": "3.2", "l40s": "1.1", "a100": "1.8", "l4": "0.6123456789"}
NEW_PRICES = {"h100": "2.95", "l40s": "1.25", "a100": "1.7", "l4": "0", "t4": "0.35"}
"""Of a GPU-hour of each flavor; t4 have none before, a40 never."""
PRICES_CHANGE = 2 * 24 + 23
"""The hour that begins at midnight in Berlin, in winter."""


@dataclass(frozen=True)
class Use:
    """A hold of project ``project`` (its number), or foreign use (None): of devices, or of a count of a resource. The
    watcher hears of each of its events ``late`` seconds afterwards. A custom claim also has admin access to a GPU of
    its node.
    """

    number: int
    span: Span
    flavor: str
    late: int
    project: int | None = None
    devices: tuple[Device, ...] = ()
    resource: str = ""
    amount: int = 0
    node: str = ""
    is_custom: bool = False

    @property
    def admitted(self) -> int:
        """Return when the lease of a count was admitted, up to half an hour before it was held."""
        return max(1, self.span.start - 60 * (self.number % 30))


@dataclass(frozen=True)
class Job:
    """A queued Job on l40s: it reserves ``per_pod`` GPUs for each pod during ``span``."""

    number: int
    span: Span
    project: int
    pods: tuple[Span, ...]
    per_pod: int
    late: int


class NodeState(NamedTuple):
    """``broken`` is a number of units, or of an h100 the number of the GPU and one; ``state`` is ready, not_ready,
    cordoned, gone or unpublished (its ResourceSlice is gone).
    """

    start: int
    state: str = "ready"
    broken: int = 0
    layout: str = "balanced"


@dataclass
class Plan:
    times: Times = TIMES
    uses: list[Use] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    nodes: dict[str, list[NodeState]] = field(default_factory=dict)


def draw(seed: int, allocations: int, times: Times = TIMES) -> Plan:
    """Return a week, or another time, with this many allocations and Jobs, and some foreign use beside them.

    Of the holds of A100 none is heard of after the layout has changed that began before: a hold is charged what a unit
    is worth when it is recorded.
    """
    random = Random(seed)
    plan, numbers = Plan(times), count()
    of_gpus, of_parts, of_jobs = allocations * 3 // 10, allocations // 5, allocations // 10
    plan.uses += _of_gpus(random, numbers, of_gpus, times)
    plan.uses += _of_parts(random, numbers, of_parts, times)
    plan.uses += _of_counts(random, numbers, allocations - of_gpus - of_parts - of_jobs, times)
    plan.uses += _foreign_counts(random, numbers, allocations // 20, times)
    plan.jobs += _jobs(random, numbers, of_jobs, times)
    plan.nodes = _nodes(random, times)
    changed = plan.nodes["a100-1"][-1].start
    plan.uses = [
        replace(use, late=0)
        if (use.flavor == "a100" and 0 <= changed - use.span.start <= times.apart) or _is_near_a_change(use.span, times)
        else use
        for use in plan.uses
    ]
    return plan


def _is_near_a_change(span: Span, times: Times) -> bool:
    """Return whether something would be heard of late in a gap, or after the team has moved."""
    edges = [*(gap.start for gap in times.gaps), times.moved]
    return any(edge - times.apart <= at < edge for edge in edges for at in span)


def _length(random: Random, hours: float) -> int:
    """Return a length of whole seconds, at random; some are as short as can be, some whole hours."""
    drawn = max(1, int(random.expovariate(1 / (hours * HOUR))))
    return random.choice([drawn, drawn, drawn, drawn, random.randrange(1, 90), HOUR * random.randrange(1, 5)])


def _late(random: Random, most: int) -> int:
    return random.choice([0, 0, random.randrange(1, most)])


class _Gpu:
    """A GPU with the uses of it, in the order of their starts. They are heard of in any order."""

    def __init__(self, apart: int) -> None:
        self.apart = apart
        self.taken: list[tuple[Device, Span, int]] = []

    def fits(self, device: Device, start: int, late: int) -> bool:
        """Return whether the place is free, and the end of what was there is heard of before."""
        for other, span, others_late in self.taken:
            is_near = span.end > start - self.apart and (late or others_late)
            if other.mask & device.mask and (span.end > start or is_near):
                return False
        return True

    def is_free(self, device: Device, span: Span) -> bool:
        """Return whether nothing is at the place at any time of the span, nor shortly before or after it."""
        return not any(
            other.mask & device.mask and taken.start < span.end + self.apart and span.start < taken.end + self.apart
            for other, taken, _ in self.taken
        )


def _of_gpus(random: Random, numbers: Iterator[int], wanted: int, times: Times) -> Iterator[Use]:
    """Yield holds of h100s, one in fourteen of them foreign."""
    gpus = {(f"h100-{n}", index): _Gpu(times.apart) for n in range(NODES["h100"]) for index in range(GPUS_OF_A_NODE)}
    found = 0
    for start in sorted(random.sample(range(60, times.length - 60), wanted * 4)):
        if found == wanted:
            return
        late, amount = _late(random, times.late), random.choice([1, 1, 1, 2])
        profile = random.choice(["", "", "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "3g.40gb", "4g.40gb"])
        node = f"h100-{random.randrange(NODES['h100'])}"
        devices = _places(random, gpus, node, profile, amount, start, late)
        is_foreign = random.randrange(14) == 0
        if devices:
            span = Span(start, start + _length(random, 3))
            for device in devices:
                gpus[node, device.gpu].taken.append((device, span, late))
            found += not is_foreign
            project = None if is_foreign else random.randrange(PROJECTS)
            is_custom = project is not None and random.randrange(6) == 0
            yield Use(next(numbers), span, "h100", late, project, devices=devices, is_custom=is_custom)


def _places(
    random: Random, gpus: dict[tuple[str, int], _Gpu], node: str, profile: str, amount: int, start: int, late: int
) -> tuple[Device, ...]:
    """Return free places on GPUs of the node, each on another one; none if there are not as many."""
    found = []
    for index in random.sample(range(GPUS_OF_A_NODE), GPUS_OF_A_NODE):
        starts = random.sample(PROFILES[profile][1], len(PROFILES[profile][1]))
        devices = (Device(node, index, profile, place) for place in starts)
        if device := next((one for one in devices if gpus[node, index].fits(one, start, late)), None):
            found.append(device)
    return tuple(found[:amount]) if len(found) >= amount else ()


def _of_parts(random: Random, numbers: Iterator[int], wanted: int, times: Times) -> Iterator[Use]:
    """Yield holds of a30s and a10s, some of them foreign; only custom claims and foreign ones have several shares."""
    gpus = {(flavor, index): _Gpu(times.apart) for flavor in ("a30", "a10") for index in range(GPUS_OF_A_NODE)}
    while wanted:
        start, late = random.randrange(60, times.length), _late(random, times.late)
        flavor = random.choice(["a30", "a10"])
        span, index = Span(start, start + _length(random, 3)), random.randrange(GPUS_OF_A_NODE)
        project = random.choice([None, *range(PROJECTS)])
        is_custom = project is not None and random.randrange(3) == 0
        profile, shares, place = random.choice(["2g.12gb", "1g.6gb"]), 0, 0
        if flavor == "a30":
            place = MADE[profile][1][0]
        else:
            profile, shares = "", random.randrange(1, SHARES) if is_custom or project is None else 1
            place = random.randrange(SHARES - shares + 1)
        device = Device(f"{flavor}-0", index, profile, place, shares)
        if gpus[flavor, index].is_free(device, span):
            gpus[flavor, index].taken.append((device, span, late))
            wanted -= project is not None
            yield Use(next(numbers), span, flavor, late, project, devices=(device,), is_custom=is_custom)


def _of_counts(random: Random, numbers: Iterator[int], wanted: int, times: Times) -> Iterator[Use]:
    for start in sorted(random.randrange(60, times.length) for _ in range(wanted)):
        flavor = random.choice(["l40s", "l40s", "t4", "l4", "a40", "a100", "a100"])
        resource, span = random.choice(COUNTED[flavor]), Span(start, start + _length(random, 4))
        late, project, amount = _late(random, times.late), random.randrange(PROJECTS), random.randrange(1, 4)
        yield Use(next(numbers), span, flavor, late, project, resource=resource, amount=amount)


def _foreign_counts(random: Random, numbers: Iterator[int], wanted: int, times: Times) -> Iterator[Use]:
    """Yield pods that name their node, one in five with more than the node has. Some begin or end in each gap."""
    for gap in times.gaps:
        for span in (Span(gap.start - HOUR, gap.start + 1000), Span(gap.end - 1000, gap.end + HOUR)):
            yield Use(next(numbers), span, "l40s", late=0, resource=GPU, amount=1, node="l40s-0")
    for _ in range(wanted):
        flavor = random.choice(["l40s", "t4", "l4", "a40", "a100"])
        node, resource = f"{flavor}-{random.randrange(NODES[flavor])}", random.choice(COUNTED[flavor])
        start, amount = random.randrange(60, times.length), random.choice([1, 1, 2, 3, 99])
        span, late = Span(start, start + _length(random, 2)), _late(random, times.late)
        yield Use(next(numbers), span, flavor, late, resource=resource, amount=amount, node=node)


def _jobs(random: Random, numbers: Iterator[int], wanted: int, times: Times) -> Iterator[Job]:
    """Yield Jobs; Kueue has released the quota of some before their pods have ended. None begins or ends anything in a
    gap, nor has the team of one moved meanwhile.
    """
    while wanted:
        start = random.randrange(60, times.length * 6 // 7)
        begins = sorted(start + APART + random.randrange(600) for _ in range(random.choice([1, 1, 2, 3])))
        pods = tuple(Span(begin, begin + APART + _length(random, 2)) for begin in begins)
        last = max(pod.end for pod in pods)
        is_early = random.randrange(4) == 0
        end = max(begins[-1] + APART, last - random.randrange(60, 600)) if is_early else last + APART
        late, project = 0 if is_early else _late(random, LATE), random.randrange(PROJECTS)
        edges = [start, end, *(edge for pod in pods for edge in pod)]
        in_gap = any(gap.start - APART <= edge < gap.end + APART for gap in times.gaps for edge in edges)
        has_moved = project in MOVED_PROJECTS and start - APART < times.moved < max(edges) + APART
        if not in_gap and not has_moved:
            wanted -= 1
            yield Job(next(numbers), Span(start, end), project, pods, random.randrange(1, 3), late)


def _nodes(random: Random, times: Times) -> dict[str, list[NodeState]]:
    """Return the states of each node; a100-1 gets another layout in the fifth seventh of the time."""
    seventh = times.length // 7
    found = {f"{flavor}-{n}": [NodeState(0)] for flavor, number in NODES.items() for n in range(number)}
    faults = {
        "l40s-0": ("ready", 1),
        "l40s-1": ("not_ready", 0),
        "l40s-2": ("cordoned", 0),
        "l40s-3": ("gone", 0),
        "t4-0": ("ready", 4),
        "l4-0": ("ready", 3),
        "a40-0": ("cordoned", 0),
        "a100-0": ("not_ready", 0),
        "h100-0": ("ready", 3),
        "h100-1": ("not_ready", 0),
        "a30-0": ("unpublished", 0),
        "a10-0": ("ready", 2),
    }
    for node, (state, broken) in faults.items():
        for day in random.sample(range(7), 3):
            start = day * seventh + random.randrange(60, seventh // 2)
            found[node] += [NodeState(start, state, broken), NodeState(start + _length(random, 3) % (seventh // 2) + 1)]
        found[node].sort()
    for gap in times.gaps:
        found["l40s-1"] += [NodeState(gap.start + 500, "ready", 2), NodeState(gap.end - 700)]
        found["l40s-2"] += [NodeState(gap.start + 600, "not_ready"), NodeState(gap.end + 800)]
    for node in ("l40s-1", "l40s-2"):
        found[node].sort()
    found["h100-0"] += [
        NodeState(6 * seventh + seventh // 2 + n * HOUR, s) for n, s in enumerate(("unpublished", "ready"))
    ]
    found["h100-0"].sort()
    changed = 4 * seventh + random.randrange(seventh)
    found["a100-1"].append(NodeState(changed, layout="sevenths"))
    return found
