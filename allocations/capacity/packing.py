"""Computes how many slices fit on a flavor's GPUs, and how many of them one request can get. Pure.

With dynamic MIG a GPU is partitioned on demand. What fits then depends on where its instances are placed
(``quotas.catalog.layouts``), not only on how much memory is free.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import floor

from allocations.capacity.devices import DISTINCT_GPUS, Occupancy, PhysicalGpu, SliceShape, group_of, occupancy
from quotas.catalog import layouts
from quotas.catalog.mig_tables import Geometry

GpuState = tuple[PhysicalGpu, Occupancy, int]
"""A GPU, its occupancy if it has dynamic MIG, and the number of GPUs in the same state."""
EMPTY: Occupancy = frozenset()


class FlavorDevices:
    """The GPUs of one flavor, and the slices that fit on them.

    ``gpus`` may be a function, which is called only if single GPUs are needed. Totals need only ``states``, which
    returns one GPU for each state, with the number of such GPUs. ``part_of`` returns the fraction of a GPU that a
    statically created MIG profile is.
    """

    def __init__(
        self,
        gpus: Iterable[PhysicalGpu] | Callable[[], Iterable[PhysicalGpu]],
        geometry: Geometry | None = None,
        occupancies: Mapping[PhysicalGpu, Occupancy] | None = None,
        states: Callable[[], Iterable[tuple[PhysicalGpu, int]]] | None = None,
        part_of: Callable[[str], Fraction] = lambda profile: Fraction(1),
    ) -> None:
        self._read_gpus = gpus
        self.geometry = geometry
        self._planned_occupancies = occupancies
        self._read_states = states
        self._part_of = part_of
        self._room_cache: dict[tuple[str, str, int, Occupancy], int] = {}

    @cached_property
    def gpus(self) -> tuple[PhysicalGpu, ...]:
        """All GPUs, sorted by node and name."""
        gpus = self._read_gpus() if callable(self._read_gpus) else self._read_gpus
        return tuple(sorted(gpus, key=lambda gpu: gpu.key))

    @cached_property
    def occupancies(self) -> Mapping[PhysicalGpu, Occupancy]:
        """The occupancy of each GPU with dynamic MIG; empty for other flavors."""
        if self.geometry is None or self._planned_occupancies is not None:
            return self._planned_occupancies or {}
        return {gpu: occupancy(self.geometry, gpu) for gpu in self.gpus}

    def of_clique(self, clique: str) -> "FlavorDevices":
        """Return only the GPUs of the NVLink clique."""
        gpus = (gpu for gpu in self.gpus if gpu.clique == clique)
        return FlavorDevices(gpus, self.geometry, self._planned_occupancies, part_of=self._part_of)

    def with_occupancies(self, occupancies: Mapping[PhysicalGpu, Occupancy]) -> "FlavorDevices":
        """Return the same GPUs with other occupancies."""
        return FlavorDevices(self.gpus, self.geometry, occupancies, part_of=self._part_of)

    def total(self, shape: SliceShape, *, empty: bool = False) -> int:
        """Return how many slices fit, each with its share of its node's CPU, memory and pods.

        With ``empty``, return how many fit on an idle fleet.
        """
        fitting_by_node: Counter[str] = Counter()
        for gpu, placements, count in self._states:
            fitting = self._fitting(shape, gpu, EMPTY if empty else placements, empty=empty)
            fitting_by_node[gpu.node if gpu.blocked_gpus else ""] += count * fitting
        bounds = {} if empty else self._node_bounds(shape, self._states)
        return sum(min(fitting, bounds.get(node, fitting)) for node, fitting in fitting_by_node.items())

    def max_colocated(
        self, shape: SliceShape, constraints: Collection[str], *, spread: bool, empty: bool = False
    ) -> int:
        """Return the largest number of slices that one request can get now under its constraints.

        With ``empty``, return the largest number on an idle fleet.
        """
        fitting_by_node: Counter[tuple[tuple[str, ...], str]] = Counter()
        for gpu, fitting in self.room(shape, empty=empty):
            if (group := group_of(gpu, constraints, spread=spread)) is not None:
                fitting_by_node[group, gpu.node] += min(1, fitting) if DISTINCT_GPUS in constraints else fitting
        bounds = {} if empty else self.node_bounds(shape)
        fitting_by_group: Counter[tuple[str, ...]] = Counter()
        for (group, node), fitting in fitting_by_node.items():
            fitting_by_group[group] += min(fitting, bounds.get(node, fitting))
        return max(fitting_by_group.values(), default=0)

    def room(self, shape: SliceShape, *, empty: bool = False) -> Iterator[tuple[PhysicalGpu, int]]:
        """Yield each GPU with how many slices fit on it; with ``empty``, if it were idle."""
        for gpu in self.gpus:
            placements = EMPTY if empty or self.geometry is None else self.occupancies[gpu]
            yield gpu, self._fitting(shape, gpu, placements, empty=empty)

    def node_bounds(self, shape: SliceShape) -> dict[str, int]:
        """Return how many slices a node has CPU, memory and pods for, for each node with blocked GPUs."""
        return self._node_bounds(shape, self._on_blocked_nodes)

    def free_parts(self, shape: SliceShape) -> dict[str, Fraction]:
        """Return how much of its GPUs (in GPUs) a node has CPU, memory and pods for, for each node with blocked
        GPUs."""
        return self._free_parts(shape, self._on_blocked_nodes)

    @cached_property
    def _on_blocked_nodes(self) -> Sequence[GpuState]:
        return [(gpu, self.occupancies.get(gpu, EMPTY), 1) for gpu in self.gpus if gpu.blocked_gpus]

    def _node_bounds(self, shape: SliceShape, states: Iterable[GpuState]) -> dict[str, int]:
        return {node: floor(free / self._slice_part(shape)) for node, free in self._free_parts(shape, states).items()}

    def _free_parts(self, shape: SliceShape, states: Iterable[GpuState]) -> dict[str, Fraction]:
        free_by_node: dict[str, Fraction] = {}
        for gpu, placements, count in states:
            if gpu.blocked_gpus:
                free = free_by_node.get(gpu.node, -gpu.blocked_gpus)
                free_by_node[gpu.node] = free + count * self._free_part(gpu, placements, shape)
        return {node: max(Fraction(0), free) for node, free in free_by_node.items()}

    def _fitting(self, shape: SliceShape, gpu: PhysicalGpu, placements: Occupancy, *, empty: bool) -> int:
        """Return how many more slices fit on the GPU beside ``placements``.

        With ``empty``, its allocated devices count as free.
        """
        if self.geometry is not None:
            key = (shape.kind, shape.profile, shape.replicas, placements)
            if key not in self._room_cache:
                self._room_cache[key] = _room_beside(self.geometry, placements, shape)
            return self._room_cache[key]
        if shape.kind == "mig":
            free = [profile for name, profile in gpu.mig_profiles.items() if empty or name not in gpu.allocated]
            return free.count(shape.profile)
        return 0 if gpu.mig_profiles else max(0, shape.replicas - (0 if empty else len(gpu.allocated)))

    def _slice_part(self, shape: SliceShape) -> Fraction:
        """Return the fraction of a GPU that one slice is."""
        if shape.kind != "mig":
            return Fraction(1, shape.replicas)
        if self.geometry is None:
            return self._part_of(shape.profile)
        sizes = {profile.name: profile.size for profile in self.geometry.profiles}
        return Fraction(sizes.get(shape.profile, self.geometry.memory), self.geometry.memory)

    def _free_part(self, gpu: PhysicalGpu, placements: Occupancy, shape: SliceShape) -> Fraction:
        """Return the fraction of the GPU that is free."""
        if self.geometry is not None:
            used = self.geometry.memory if placements is None else sum(place.size for place in placements)
            return Fraction(self.geometry.memory - used, self.geometry.memory)
        if gpu.mig_profiles:
            free = (profile for name, profile in gpu.mig_profiles.items() if name not in gpu.allocated)
            return sum(map(self._part_of, free), Fraction(0))
        return max(Fraction(0), 1 - Fraction(len(gpu.allocated), shape.replicas))

    @cached_property
    def _states(self) -> Sequence[GpuState]:
        """One GPU for each state, with its occupancy and the number of GPUs in that state."""
        if self._read_states is not None:
            gpus = [(gpu, self._occupancy(gpu), count) for gpu, count in self._read_states()]
        else:
            gpus = [(gpu, self.occupancies.get(gpu, EMPTY), 1) for gpu in self.gpus]
        by_key: dict[Hashable, GpuState] = {}
        for gpu, placements, count in gpus:
            key = (gpu.node if gpu.blocked_gpus else "", self._state_key(gpu, placements))
            state = by_key.get(key, (gpu, placements, 0))
            by_key[key] = (*state[:2], state[2] + count)
        return tuple(by_key.values())

    def _occupancy(self, gpu: PhysicalGpu) -> Occupancy:
        return occupancy(self.geometry, gpu) if self.geometry else EMPTY

    def _state_key(self, gpu: PhysicalGpu, placements: Occupancy) -> Hashable:
        """Return everything that determines which slices fit on the GPU."""
        if self.geometry is not None:
            return placements
        return len(gpu.allocated) if not gpu.mig_profiles else (tuple(sorted(gpu.mig_profiles.items())), gpu.allocated)


def _room_beside(geometry: Geometry, placements: Occupancy, shape: SliceShape) -> int:
    if placements is None:
        return 0
    if shape.kind != "mig":
        return 0 if placements else 1
    return layouts.remaining(geometry, placements).get(shape.profile, 0)
