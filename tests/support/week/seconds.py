"""What a week or another time amounts to: a step function sampled at each of its seconds.

It shares no code with the portal.

Amounts are integers, in units of an account's own: the least that all of its shares are multiples of.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from operator import add, sub

from tests.support.week.plan import (
    COUNTED,
    GPU,
    GPUS_OF_A_NODE,
    HIDDEN,
    HOUR,
    LAYOUTS,
    MADE,
    NAMED,
    NODES,
    PROFILES,
    SHARED,
    SHARES,
    UNITS,
    Device,
    NodeState,
    Plan,
    Span,
    Times,
    Use,
)

WHOLE = (1 << 8) - 1
SEVENTHS = {"": 7, "1g.10gb": 1, "1g.20gb": 1, "2g.20gb": 2, "3g.40gb": 3, "4g.40gb": 4}
"""Of the compute that an instance takes (NVIDIA, MIG user guide)."""
REPLICAS = {"t4": 4, "l4": 2}
WEIGHT = {name: max(Fraction(SEVENTHS[name], 7), Fraction(size, 8)) for name, (size, _) in PROFILES.items()}
WEIGHT |= {name: Fraction(size, 4) for name, (size, _) in MADE.items()}
OF_RESOURCE = {f"nvidia.com/mig-{name}": weight for name, weight in WEIGHT.items()}
Amounts = list[int]
Step = tuple[Span, Fraction]


@dataclass
class Result:
    """GPU-hours in each hour of the time: by flavor and category, and what is charged by the number of a hold or Job.
    ``used`` is what the pods of each Job used in it.
    """

    hours: int
    parts: dict[tuple[str, str], list[Fraction]] = field(init=False)
    held: dict[int, list[Fraction]] = field(init=False)
    used: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    def __post_init__(self) -> None:
        self.parts = defaultdict(lambda: [Fraction(0)] * self.hours)
        self.held = defaultdict(lambda: [Fraction(0)] * self.hours)


def of_plan(plan: Plan) -> Result:
    """Return the sums of a week or another time."""
    result, length = Result(plan.times.length // HOUR), plan.times.length
    for name in (f"{flavor}-{n}" for flavor in NAMED for n in range(NODES[flavor])):
        for index in range(GPUS_OF_A_NODE):
            _add_gpu(plan, name, index, result)
    for flavor, resources in COUNTED.items():
        for resource in resources:
            _add_count(plan, flavor, resource, result)
    for job in plan.jobs:
        for pod in job.pods:
            result.used[job.number] += Fraction(sum(job.per_pod for _ in range(pod.start, min(pod.end, length))), HOUR)
    return result


def sampled(steps: Iterable[Step], scale: int, length: int) -> Amounts:
    """Return the sum of the steps at each of ``length`` seconds."""
    changes = [0] * (length + 1)
    for span, amount in steps:
        if span.start < length:
            units = int(amount * scale)
            changes[span.start] += units
            changes[min(span.end, length)] -= units
    return list(accumulate(changes[:-1]))


def _scale(amounts: Iterable[Fraction]) -> int:
    return lcm(*(amount.denominator for amount in amounts))


def _add_seconds(hours: list[Fraction], start: int, each: Amounts, scale: int) -> None:
    """Add the amounts of the seconds from ``start`` on to their hours."""
    for hour in range(start // HOUR, -(-(start + len(each)) // HOUR)):
        seconds = slice(max(hour * HOUR - start, 0), (hour + 1) * HOUR - start)
        hours[hour] += Fraction(sum(each[seconds]), scale * HOUR)


def _add_gpu(plan: Plan, node: str, index: int, result: Result) -> None:
    """Add the sums of a GPU that DRA names. At each second a use is charged what those before it leave, foreign ones
    last.
    """
    flavor, length, scale = node.partition("-")[0], plan.times.length, 56
    uses = [(use, device) for use in plan.uses for device in use.devices if (device.node, device.gpu) == (node, index)]
    whole = [(Span(0, length), Fraction(1))]
    left = sampled(whole, scale, length)
    charged = {"held": [0] * length, "unmanaged": [0] * length}
    for use, device in sorted(uses, key=lambda one: (one[0].project is None, one[0].span.start)):
        seconds, most = slice(use.span.start, min(use.span.end, length)), int(_weight(device) * scale)
        each = [min(amount, most) for amount in left[seconds]]
        left[seconds] = map(sub, left[seconds], each)
        category = "unmanaged" if use.project is None else "held"
        charged[category][seconds] = map(add, charged[category][seconds], each)
        if use.project is not None:
            _add_seconds(result.held[use.number], use.span.start, each, scale)
    broken = [
        (span, Fraction(1))
        for span, state in _spans(plan.nodes[node], length)
        if state.state in {"not_ready", "cordoned", "unpublished"} or state.broken == index + 1
    ]
    if flavor == "h100" and "" in plan.times.hidden:
        broken.append((Span(plan.times.hiding, length), Fraction(1)))
    weights = [(use.span, _weight(device)) for use, device in uses]
    masks = [(use.span, Fraction(device.mask)) for use, device in uses]
    weight, mask = sampled(weights, scale, length), sampled(masks, 1, length)
    capacity = sampled(whole, scale, length)
    in_use = list(map(min, weight, capacity))
    not_used = list(map(sub, capacity, in_use))
    unavailable = list(map(min, sampled(broken, scale, length), not_used))
    free = list(map(sub, not_used, unavailable))
    idle = list(map(min, free, _fits(flavor, mask, plan.times, scale)))
    amounts = {
        **charged,
        "unavailable": unavailable,
        "idle": idle,
        "stranded": list(map(sub, free, idle)),
    }
    amounts["variance"] = list(map(sub, in_use, map(add, amounts["held"], amounts["unmanaged"])))
    for category, each in amounts.items():
        _add_seconds(result.parts[flavor, category], 0, each, scale)


def _weight(device: Device) -> Fraction:
    return Fraction(device.shares, SHARES) if device.shares else WEIGHT[device.profile]


def _fits(flavor: str, taken: Amounts, times: Times, scale: int) -> Amounts:
    """Return the most that offered slices could take of a GPU at each second, beside what is taken (masks)."""
    if flavor == "a10":
        return [scale] * len(taken)
    if flavor == "a30":
        places = [(Device("", 0, name, start).mask, WEIGHT[name]) for name, (_, [start]) in MADE.items()]
        left = {mask: sum((part for place, part in places if not place & mask), Fraction(0)) for mask in set(taken)}
        return [int(left[mask] * scale) for mask in taken]
    before, afterwards = (
        [int(amount * scale) for amount in most_that_fits(hidden)] for hidden in (HIDDEN, HIDDEN + times.hidden)
    )
    return [before[mask] for mask in taken[: times.hiding]] + [afterwards[mask] for mask in taken[times.hiding :]]


def most_that_fits(hidden: Sequence[str]) -> list[Fraction]:
    """Return the most that slices can take of a GPU beside these memory slices (a mask), at most all of it. Slices of
    the ``hidden`` profiles are not offered.
    """
    places = [
        (Device("", 0, name, start).mask, WEIGHT[name])
        for name, (_, starts) in PROFILES.items()
        for start in starts
        if name not in hidden
    ]
    best = [Fraction(0)] * (WHOLE + 1)
    for taken in range(WHOLE, -1, -1):
        found = (weight + best[taken | mask] for mask, weight in places if not taken & mask)
        best[taken] = max(found, default=Fraction(0))
    return [min(one, Fraction(1)) for one in best]


def _spans(states: Sequence[NodeState], length: int) -> Iterator[tuple[Span, NodeState]]:
    ends = [state.start for state in states[1:]] + [length]
    for state, end in zip(states, ends, strict=True):
        yield Span(state.start, end), state


def unit_value(flavor: str, layout: str, resource: str) -> Fraction:
    """Return the GPUs that a unit is on its node: of a layout, the part of its weight in that of all, of eight GPUs."""
    if resource in (GPU, SHARED):
        return Fraction(1) if resource == GPU else Fraction(1, REPLICAS[flavor])
    total = sum(number * OF_RESOURCE[name] for name, number in LAYOUTS[layout].items())
    return 8 * OF_RESOURCE[resource] / total


def _add_count(plan: Plan, flavor: str, resource: str, result: Result) -> None:
    """Add the sums of a resource. A unit is charged what it is worth on average over the nodes when it begins."""
    capacity, broken, foreign = list[Step](), list[Step](), list[Step]()
    length = plan.times.length
    for name, span, state, number in _units(plan, flavor, resource):
        value = unit_value(flavor, state.layout, resource)
        capacity.append((span, number * value))
        lost = number if state.state in {"not_ready", "cordoned"} else state.broken
        broken.append((span, lost * value))
        for use in plan.uses:
            if use.project is None and (use.node, use.resource) == (name, resource):
                both = Span(max(use.span.start, span.start), min(use.span.end, span.end))
                if both.start < both.end:
                    foreign.append((both, min(use.amount, number) * value))
    charged = list(_charged(plan, flavor, resource))
    steps = [step for _, step in charged]
    scale = _scale(amount for step in (capacity, broken, foreign, steps) for _, amount in step)
    for number, (span, amount) in charged:
        if span.start < length:
            each = [int(amount * scale)] * (min(span.end, length) - span.start)
            _add_seconds(result.held[number], span.start, each, scale)
    there, in_hold, unmanaged = (sampled(each, scale, length) for each in (capacity, steps, foreign))
    weight = list(map(add, in_hold, unmanaged))
    in_use = list(map(min, weight, there))
    not_used = list(map(sub, there, in_use))
    unavailable = list(map(min, sampled(broken, scale, length), not_used))
    amounts = {
        "held": in_hold,
        "unmanaged": unmanaged,
        "unavailable": unavailable,
        "idle": list(map(sub, not_used, unavailable)),
        "variance": list(map(sub, in_use, weight)),
    }
    for category, each in amounts.items():
        _add_seconds(result.parts[flavor, category], 0, each, scale)


def _units(plan: Plan, flavor: str, resource: str) -> Iterator[tuple[str, Span, NodeState, int]]:
    """Yield each time in which a node of the flavor has the resource, with how many units."""
    for name in (f"{flavor}-{n}" for n in range(NODES[flavor])):
        for span, state in _spans(plan.nodes[name], plan.times.length):
            units = LAYOUTS[state.layout] if flavor == "a100" else UNITS[flavor]
            if state.state != "gone" and resource in units and span.start < span.end:
                yield name, span, state, units[resource]


def _charged(plan: Plan, flavor: str, resource: str) -> Iterator[tuple[int, Step]]:
    """Yield number and step of each hold of a resource; a Job is charged for its pods and what else it reserved."""
    for use in plan.uses:
        if use.project is not None and (use.flavor, use.resource) == (flavor, resource):
            yield use.number, (use.span, use.amount * _price_share(plan, flavor, resource, use))
    for job in plan.jobs if flavor == "l40s" else ():
        reserved = [(job.span, Fraction(len(job.pods) * job.per_pod))]
        used = [(pod, Fraction(job.per_pod)) for pod in job.pods]
        edges = sorted({at for span, _ in (*reserved, *used) for at in span})
        for start, end in pairwise(edges):
            there = [sum((a for s, a in each if s.start <= start < s.end), Fraction(0)) for each in (reserved, used)]
            if max(there):
                yield job.number, (Span(start, end), max(there))


def _price_share(plan: Plan, flavor: str, resource: str, use: Use) -> Fraction:
    """Return what a unit is worth over the nodes of the flavor when the use begins; nodes that are gone count as they
    were, since all nodes of a flavor with layouts stay.
    """
    if flavor != "a100":
        return unit_value(flavor, "", resource)
    now = [(n, s) for name, span, s, n in _units(plan, flavor, resource) if span.start <= use.span.start < span.end]
    return sum((n * unit_value(flavor, s.layout, resource) for n, s in now), Fraction(0)) / sum(n for n, _ in now)
