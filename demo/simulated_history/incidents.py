"""What happens to the nodes of a simulated history: failures, drains, a layout that is changed, a node that is added.

The random numbers are the caller's, and nothing is read from the database.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import ceil
from random import Random

from demo.simulated_history.model import FleetUnit, LayoutChange, Slice, World
from demo.simulated_history.past_intervals import PastCapacity
from quotas.metering.hours import DAY, HOUR, hour_of
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit, Value

NOT_READY, CORDONED, UNHEALTHY, TAINTED = "node_not_ready", "cordoned", "unhealthy", "tainted"
"""Values of ``CapacityInterval.state``."""
EVICTED_AFTER = timedelta(minutes=5)
"""How long pods stay on a node that is not ready: the toleration that Kubernetes adds."""
MINUTE = timedelta(minutes=1)
MIG, MIG_CONFIG = "nvidia.com/mig-", "nvidia.com/mig.config"
ATTEMPTS = 50


@dataclass(frozen=True)
class Incident:
    """That a node, or one of its units where ``name`` is given, could not be used in ``[start, end)``. What runs there
    ends at ``evicted``.
    """

    node: str
    name: str
    state: str
    start: datetime
    end: datetime
    evicted: datetime


def draw(world: World, random: Random) -> list[Incident]:
    """Return failures and drains, by time: at least one of each kind, as far as the history has room for them."""
    nodes = sorted({one.unit.node for one in world.units})
    days = (world.until - world.start) / DAY
    found: list[Incident] = []
    for state, count in (
        (NOT_READY, len(nodes) * days / 60),
        (CORDONED, len(nodes) * days / 90),
        (UNHEALTHY, sum(world.gpus_by_flavor.values()) * days / 700),
    ):
        for _ in range(max(1, round(count))):
            attempts = (_incident(world, random, state, nodes) for _ in range(ATTEMPTS))
            if fitting := next((one for one in attempts if _fits(one, found, world)), None):
                found.append(fitting)
    return sorted(found, key=lambda one: one.start)


def _incident(world: World, random: Random, state: str, nodes: Sequence[str]) -> Incident:
    start = world.start + timedelta(seconds=random.randrange(int((world.until - world.start).total_seconds())))
    node = random.choice(nodes)
    if state == NOT_READY:
        return Incident(node, "", state, start, start + random.randint(20, 400) * MINUTE, start + EVICTED_AFTER)
    if state == CORDONED:
        start = hour_of(start).replace(hour=random.randint(8, 11)) + random.randrange(60) * MINUTE
        end = start + random.randint(2 * 60, 10 * 60) * MINUTE
        return Incident(node, "", state, start, end, start + random.randint(10, 40) * MINUTE)
    unit = random.choice([one.unit for one in world.units if one.unit.node == node])
    state = TAINTED if unit.kind == GPU else UNHEALTHY
    return Incident(node, unit.name, state, start, start + random.randint(6 * 60, 40 * 60) * MINUTE, start)


def _fits(one: Incident, others: Sequence[Incident], world: World) -> bool:
    """Return whether it is within the history, an hour after its start and before its end, and alone on its node."""
    is_within = world.start + HOUR <= one.start and one.end <= world.until - HOUR
    is_alone = all(other.node != one.node or one.end < other.start or other.end < one.start for other in others)
    return is_within and is_alone


def joined(world: World) -> dict[str, datetime]:
    """Return since when each node is there: from the start on, but for one that is added after a fifth of the time."""
    found = {one.unit.node: world.start for one in world.units}
    of_flavor: dict[str, set[str]] = defaultdict(set)
    for one in world.units:
        of_flavor[one.value.flavor].add(one.unit.node)
    several = [flavor for flavor, nodes in sorted(of_flavor.items()) if len(nodes) > 1]
    if several:
        found[max(of_flavor[several[-1]])] = hour_of(world.start + (world.until - world.start) / 5)
    return found


def layout_changes(world: World) -> Iterator[LayoutChange]:
    """Yield a change for each flavor whose nodes have several MIG resources: before, they had the smallest alone."""
    resources: dict[str, set[str]] = defaultdict(set)
    for one in world.units:
        if one.unit.kind == RESOURCE:
            resources[one.value.flavor].add(one.unit.name)
    start = hour_of(world.start + (world.until - world.start) * 0.35)
    for flavor, names in sorted(resources.items()):
        slices = [one for one in world.slices if one.resource in names and one.profile]
        geometry = world.geometries.get(flavor)
        if geometry and len(names) > 1 and len(slices) == len(names):
            least = min(slices, key=lambda one: (one.gpu_share, one.key))
            share = Fraction(1, geometry.profile(least.profile).max_instances)
            former = Slice(**vars(least) | {"gpu_share": share})
            yield LayoutChange(flavor, former, start, start + 25 * MINUTE)


def capacity(
    world: World,
    incidents: Sequence[Incident],
    layouts: Sequence[LayoutChange],
    joined: Mapping[str, datetime],
) -> Iterator[PastCapacity]:
    """Yield what the nodes had until they were recorded."""
    changes = {one.flavor: one for one in layouts}
    for one in world.units:
        start, change = joined[one.unit.node], changes.get(one.value.flavor)
        yield from _timeline(one, max(start, change.end) if change else start, one.since, incidents)
    for former, change in former_units(world, layouts):
        yield from _timeline(former, joined[former.unit.node], change.start, incidents)
        emptied = FoundUnit(former.found.count, 0, CORDONED, labels=former.found.labels)
        yield PastCapacity(former.unit, emptied, former.value, change.start, change.end)


def former_units(world: World, layouts: Sequence[LayoutChange]) -> Iterator[tuple[FleetUnit, LayoutChange]]:
    """Yield the only resource of each node of these flavors before its layout changed."""
    for change in layouts:
        by_node: dict[str, list[FleetUnit]] = defaultdict(list)
        for one in world.units:
            if one.value.flavor == change.flavor:
                by_node[one.unit.node].append(one)
        for node, units in sorted(by_node.items()):
            share, profile = change.slice.gpu_share, change.slice.profile
            count = int(sum(one.found.count * one.value.gpus for one in units) / share)
            kept = {key: value for key, value in units[0].found.labels.items() if MIG not in key or profile in key}
            labels = kept | {MIG_CONFIG: f"all-{profile}"}
            unit, value = Unit(node, RESOURCE, change.slice.resource), Value(change.flavor, share, offered=True)
            yield FleetUnit(unit, FoundUnit(count, count, labels=labels), value, change.start), change


def _timeline(one: FleetUnit, start: datetime, end: datetime, incidents: Sequence[Incident]) -> Iterator[PastCapacity]:
    """Yield the intervals of a unit in ``[start, end)``, and that it was available where nothing happened to it."""
    own = [each for each in incidents if each.node == one.unit.node and each.name in ("", one.unit.name)]
    edges = sorted({start, end} | {at for each in own for at in (each.start, each.end) if start < at < end})
    for begin, until in pairwise(edges):
        now = next((each for each in own if each.start <= begin < each.end), None)
        yield PastCapacity(one.unit, found_during(one, now), one.value, begin, until)


def found_during(one: FleetUnit, incident: Incident | None) -> FoundUnit:
    """Return what there is of a unit during an incident on its node, or without one; a fault is of one GPU."""
    count, lost = one.found.count, 0
    if incident and incident.name in ("", one.unit.name):
        lost = min(count, ceil(1 / one.value.gpus)) if incident.name else count
    state = incident.state if incident and lost else ""
    return FoundUnit(count, count - lost, state, one.found.uuid, one.found.labels)
