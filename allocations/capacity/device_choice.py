"""Chooses the GPUs for an allocation's slices that leave the most room for other requests. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from allocations.capacity.devices import DISTINCT_GPUS, Occupancy, PhysicalGpu, SliceShape, group_of
from allocations.capacity.packing import FlavorDevices
from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry

Cost = tuple[int, ...]
Group = tuple[str, ...]


def choose_devices(
    devices: FlavorDevices, profile: str, count: int, constraints: Collection[str], *, spread: bool
) -> tuple[PhysicalGpu, ...] | None:
    """Return the GPU for each MIG slice of a request so that the fewest large instances are lost; None if they do not
    fit.

    1. GPUs are grouped as the request's constraints require: by node, GPU, PCIe root or clique. GPUs of a node that
       lacks CPU, memory or pods for all slices are left out.
    2. Within each group, each slice goes to the GPU that loses least (``layouts.best_gpu``). The scheduler will use
       the first free placement there.
    3. The group with the lowest cost wins; of equal groups the fuller one, then the first by name.
    """
    if devices.geometry is None:
        return None
    candidates: list[tuple[Cost, int, Group, tuple[PhysicalGpu, ...]]] = []
    seen: set[tuple[tuple[Placement, ...], ...]] = set()
    groups = _groups(devices, SliceShape("mig", profile), count, constraints, spread=spread)
    for group, members in sorted(groups.items()):
        gpus = [gpu for gpu in members if devices.occupancies[gpu] is not None]
        state = tuple(sorted(tuple(sorted(devices.occupancies[gpu] or ())) for gpu in gpus))
        if state in seen:  # an identical group comes first by name
            continue
        seen.add(state)
        is_distinct = DISTINCT_GPUS in constraints
        if choice := _choose_in_group(devices.geometry, devices.occupancies, gpus, profile, count, is_distinct):
            fullness = sum(place.size for placements in state for place in placements)
            candidates.append((choice[1], -fullness, group, choice[0]))
    return min(candidates, key=lambda candidate: candidate[:3])[3] if candidates else None


def fill_devices(
    devices: FlavorDevices, shape: SliceShape, count: int, constraints: Collection[str], avoided: Collection[str]
) -> tuple[PhysicalGpu, ...] | None:
    """Return the GPU for each slice of a request on one node, GPU after GPU; None if they do not fit.

    Of the groups that the constraints require (``group_of``), the one with the least room that suffices wins, then the
    first by name. GPUs whose UUID is ``avoided``, and those of nodes that lack CPU, memory or pods for all slices, are
    left out.
    """
    room = {
        gpu: min(1, fitting) if DISTINCT_GPUS in constraints else fitting
        for gpu, fitting in devices.room(shape)
        if gpu.uuid not in avoided
    }
    slots = {
        group: [gpu for gpu in gpus for _ in range(room.get(gpu, 0))]
        for group, gpus in _groups(devices, shape, count, constraints, spread=False).items()
    }
    suffice = [(len(gpus), group) for group, gpus in slots.items() if len(gpus) >= count]
    return tuple(slots[min(suffice)[1]][:count]) if suffice else None


def with_pending(devices: FlavorDevices, pending: Iterable[tuple[str, str]]) -> FlavorDevices:
    """Return the GPUs as they will be once the scheduler has placed pending slices, each (profile, UUID of its GPU).

    The profile of a whole GPU is "". A slice without a free placement on its GPU is left out, since it will not stay
    there.
    """
    if devices.geometry is None:
        return devices
    occupancies = dict(devices.occupancies)
    by_uuid = {gpu.uuid: gpu for gpu in devices.gpus}
    for profile, uuid in pending:
        gpu = by_uuid.get(uuid)
        placements = occupancies[gpu] if gpu else None
        if gpu and not profile:
            occupancies[gpu] = None
        elif gpu and placements is not None and (place := layouts.first_fit(devices.geometry, placements, profile)):
            occupancies[gpu] = placements | {place}
    return devices.with_occupancies(occupancies)


def best_clique(
    devices: FlavorDevices, shape: SliceShape, count: int, constraints: Collection[str], *, spread: bool
) -> str:
    """Return the NVLink clique with the most room for the request; "" if it fits in none.

    Cliques with enough free capacity are preferred; else those that would have enough if they were idle.
    """
    for empty in (False, True):
        room_by_clique = {
            name: devices.of_clique(name).max_colocated(shape, constraints, spread=spread, empty=empty)
            for name in {gpu.clique for gpu in devices.gpus if gpu.clique}
        }
        fitting = [name for name in sorted(room_by_clique) if room_by_clique[name] >= count]
        if fitting:
            return max(fitting, key=lambda name: room_by_clique[name])
    return ""


def _groups(
    devices: FlavorDevices, shape: SliceShape, count: int, constraints: Collection[str], *, spread: bool
) -> dict[Group, list[PhysicalGpu]]:
    """Return the groups of GPUs that one request's slices may share, without nodes that cannot run all of them."""
    bounds = devices.node_bounds(shape)
    groups: dict[Group, list[PhysicalGpu]] = defaultdict(list)
    for gpu in devices.gpus:
        group = group_of(gpu, constraints, spread=spread)
        if group is not None and bounds.get(gpu.node, count) >= count:
            groups[group].append(gpu)
    return groups


def _choose_in_group(
    geometry: Geometry,
    occupancies: Mapping[PhysicalGpu, Occupancy],
    gpus: Sequence[PhysicalGpu],
    profile: str,
    count: int,
    is_distinct: bool,
) -> tuple[tuple[PhysicalGpu, ...], Cost] | None:
    """Return the GPU for each of ``count`` slices within a group, and their total cost; None if they do not fit."""
    placements = {gpu: occupancies[gpu] or frozenset() for gpu in gpus}
    chosen: list[PhysicalGpu] = []
    costs: list[Cost] = []
    for _ in range(count):
        first_by_state: dict[frozenset[Placement], PhysicalGpu] = {}
        for gpu in gpus:
            if not (is_distinct and gpu in chosen):
                first_by_state.setdefault(placements[gpu], gpu)
        key = layouts.best_gpu(geometry, {gpu.key: state for state, gpu in first_by_state.items()}, profile)
        if key is None:
            return None
        gpu = next(gpu for gpu in first_by_state.values() if gpu.key == key)
        place = layouts.first_fit(geometry, placements[gpu], profile)
        assert place is not None
        costs.append(layouts.loss(geometry, placements[gpu], place))
        placements[gpu] |= {place}
        chosen.append(gpu)
    return tuple(chosen), tuple(map(sum, zip(*costs, strict=True)))
