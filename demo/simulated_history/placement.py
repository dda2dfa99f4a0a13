"""Where the slices of a simulated history are at a moment: devices by DRA, and counts by device plugin."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from demo.simulated_history.incidents import Incident, found_during
from demo.simulated_history.model import FleetUnit, Slice, World
from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry
from quotas.metering.units import GPU, FoundUnit, Unit

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Place:
    """What a slice takes: a device of a GPU, or ``count`` of a resource, of one node or of the flavor (node "")."""

    flavor: str
    node: str
    gpu: str
    device: str
    resource: str
    count: int
    share: Fraction = ZERO
    placement: Placement | None = None
    uuid: str = ""


@dataclass
class _Gpu:
    unit: FleetUnit
    share: Fraction = ZERO
    occupied: list[Placement] = field(default_factory=list)


class Fleet:
    """What is free of a fleet: units that are there, that no incident keeps from use, and that nothing uses."""

    def __init__(self, world: World) -> None:
        self._geometries: Mapping[str, Geometry] = world.geometries
        self._divisible = world.divisible
        self._there: dict[Unit, FleetUnit] = {}
        self._incidents: dict[str, Incident] = {}
        self._gpus: dict[str, dict[tuple[str, str], _Gpu]] = defaultdict(dict)
        self._used: Counter[tuple[str, str]] = Counter()
        self._used_on_node: Counter[tuple[str, str]] = Counter()

    def add(self, one: FleetUnit) -> None:
        self._there[one.unit] = one
        if one.unit.kind == GPU:
            self._gpus[one.value.flavor][one.unit.node, one.unit.name] = _Gpu(one)

    def remove(self, one: FleetUnit) -> None:
        self._there.pop(one.unit, None)

    def begin(self, incident: Incident) -> None:
        self._incidents[incident.node] = incident

    def end(self, incident: Incident) -> None:
        self._incidents.pop(incident.node, None)

    def find(self, one: Slice, count: int, *, on_nodes: bool = False, pods: int = 1) -> list[Place] | None:
        """Return places for so many slices, of which nothing is taken yet; None if they do not all fit.

        Slices by device plugin are one place on no node; ``on_nodes`` they are one for each of ``pods``, on its node.
        """
        if one.resource:
            return self._counted(one, count, pods) if on_nodes else self._count_of_flavor(one, count)
        found: list[Place] = []
        for _ in range(count):
            place = self._device(one, {each.node for each in found})
            if place is None:
                break
            self.take([place])
            found.append(place)
        self.free(found)
        return found if len(found) == count else None

    def take(self, places: Sequence[Place]) -> None:
        self._change(places, 1)

    def free(self, places: Sequence[Place]) -> None:
        self._change(places, -1)

    def _change(self, places: Sequence[Place], sign: int) -> None:
        for place in places:
            if place.resource:
                self._used[place.flavor, place.resource] += sign * place.count
                if place.node:
                    self._used_on_node[place.node, place.resource] += sign * place.count
                continue
            gpu = self._gpus[place.flavor][place.node, place.gpu]
            gpu.share += sign * place.share
            if place.placement:
                (gpu.occupied.append if sign > 0 else gpu.occupied.remove)(place.placement)

    def _found(self, one: FleetUnit) -> FoundUnit:
        return found_during(one, self._incidents.get(one.unit.node))

    def _free_units(self, flavor: str, resource: str) -> dict[str, int]:
        """Return by node the units of a resource that are available and that no pod of the node uses."""
        return {
            unit.node: self._found(one).available - self._used_on_node[unit.node, resource]
            for unit, one in self._there.items()
            if one.value.flavor == flavor and unit.name == resource
        }

    def _left(self, one: Slice) -> int:
        units = (
            each for unit, each in self._there.items() if (each.value.flavor, unit.name) == (one.flavor, one.resource)
        )
        return sum(self._found(each).available for each in units) - self._used[one.flavor, one.resource]

    def _count_of_flavor(self, one: Slice, count: int) -> list[Place] | None:
        return [Place(one.flavor, "", "", "", one.resource, count)] if count <= self._left(one) else None

    def _counted(self, one: Slice, count: int, pods: int) -> list[Place] | None:
        if count > self._left(one):
            return None
        free, found = self._free_units(one.flavor, one.resource), []
        for _ in range(pods):
            node = max(sorted(free), key=lambda name: free[name], default="")
            if not node or free[node] < count // pods:
                return None
            free[node] -= count // pods
            found.append(Place(one.flavor, node, "", "", one.resource, count // pods))
        return found

    def _device(self, one: Slice, nodes: set[str]) -> Place | None:
        """Return a device for one slice: on a GPU that is in use already if it is a part, else near the others."""
        gpus = [gpu for gpu in self._gpus[one.flavor].values() if self._found(gpu.unit).available]
        if one.kind == "whole":
            empty = [gpu for gpu in gpus if not gpu.share]
            chosen = min(empty, key=lambda gpu: (gpu.unit.unit.node not in nodes, gpu.unit.unit), default=None)
            return self._place(one, chosen, "", None) if chosen else None
        if one.flavor not in self._divisible or not one.profile:
            return None
        geometry = self._geometries[one.flavor]
        for gpu in sorted(gpus, key=lambda gpu: (-gpu.share, gpu.unit.unit)):
            fits = gpu.share + one.gpu_share <= ONE and (gpu.occupied or not gpu.share)
            if fits and (placement := layouts.first_fit(geometry, gpu.occupied, one.profile)):
                profile = geometry.profile(one.profile)
                label = layouts.device_label(one.profile)
                return self._place(one, gpu, f"-mig-{label}-{profile.gi_id}-{placement.start}", placement)
        return None

    def _place(self, one: Slice, gpu: _Gpu, suffix: str, placement: Placement | None) -> Place:
        node, name, share = gpu.unit.unit.node, gpu.unit.unit.name, one.gpu_share
        uuid = "" if suffix else gpu.unit.found.uuid
        return Place(one.flavor, node, name, f"{name}{suffix}", "", 1, share, placement, uuid)
