"""A node's GPUs as cells, each cut into its slices: what holds or uses each of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from urllib.parse import quote
from zlib import crc32

from allocations.capacity.fleet_nodes import DeviceUse, FleetNode, Holder, NodeGpu, NodeResource
from quotas.catalog import node_labels
from quotas.catalog.geometry import profile_of_resource
from quotas.catalog.mig_tables import Geometry

COLOURS = 12
"""Of teams, in ``fleet.css``. Two teams may share one: the name is in the title and the legend too."""
MAX_UNITS = 512
"""Of so many units of a resource each is drawn; of more there is one cell of all."""
MAX_SPAN = 8
SHARED = {"time-slicing": "time-sliced, 1 of {} replicas", "mps": "MPS, 1 of {} replicas"}
IN_USE, NO_POD, UNMANAGED, FREE, UNAVAILABLE = "held", "no-pod", "unmanaged", "free", "unavailable"
FILLS = {
    IN_USE: "held, used by a pod",
    NO_POD: "held without a pod",
    UNMANAGED: "unmanaged",
    FREE: "free",
    UNAVAILABLE: "unavailable",
}


@dataclass(frozen=True)
class Part:
    """A slice of a GPU, or what no slice takes of it. ``span`` is its size of 8; ``team`` is empty without a holder."""

    label: str
    words: str
    fill: str
    span: int = MAX_SPAN
    team: str = ""

    @property
    def colour(self) -> int:
        return colour(self.team)


@dataclass(frozen=True)
class Cell:
    """A GPU."""

    name: str
    url: str
    parts: Sequence[Part]

    @property
    def words(self) -> str:
        return f"{self.name}: {'; '.join(part.words for part in self.parts)}"


def colour(team: str) -> int:
    """Return the number of the team's colour, which follows from its name alone."""
    return crc32(team.encode()) % COLOURS


def cells(found: FleetNode, url: str) -> list[Cell]:
    """Return the GPUs that DRA names, and those that the device plugin counts. Kubernetes does not tell which of these
    a pod uses, nor which MIG instances share a GPU: they are drawn one after the other.
    """
    named = [_named(gpu, url, is_usable=found.row.ready) for gpu in found.gpus]
    labels = found.facts["labels"] if found.facts else {}
    whole: list[Cell] = []
    instances: dict[str, list[Part]] = {}
    for one in found.resources:
        at = f"{url}#{quote(one.name)}"
        profile = _profile(node_labels.base_of(one.name), labels)
        if one.count > MAX_UNITS * one.replicas:
            whole.append(Cell(one.name, at, [_sum(one)]))
            continue
        units = _units(one, labels, profile, found)
        if profile:
            instances[profile] = units
            continue
        for first in range(0, len(units), one.replicas):
            whole.append(Cell(f"GPU {first // one.replicas}", at, units[first : first + one.replicas]))
    return [
        *named,
        *whole,
        *_cut(instances, url, node_labels.number(labels, node_labels.COUNT_LABEL), found.geometry, len(whole)),
    ]


def _named(gpu: NodeGpu, url: str, *, is_usable: bool) -> Cell:
    width = gpu.slices or MAX_SPAN
    at, usable = f"{url}#{quote(gpu.name)}", gpu.is_healthy and is_usable
    placed = {use.placement: use for use in gpu.uses if use.placement}
    shared = [use for use in gpu.uses if not use.placement]
    if shared or not (placed or gpu.instances):
        parts = [_part(use, "", width // max(1, len(shared)), usable=usable) for use in shared]
        return Cell(gpu.name, at, parts or [_nobody("", width, usable=usable)])
    free = {(one.start, one.size): one.profile for one in gpu.instances}
    parts, column = [], 0
    for start, size in sorted({*placed, *free}):
        if start > column:
            parts.append(_nobody("", start - column, usable=usable))
        use = placed.get((start, size))
        label = f"{use.profile if use else free[start, size]} {start}"
        parts.append(_part(use, label, size, usable=usable) if use else _nobody(label, size, usable=usable))
        column = start + size
    if column < width:
        parts.append(_nobody("", width - column, usable=usable))
    return Cell(gpu.name, at, parts)


def _units(one: NodeResource, labels: Mapping[str, str], profile: str, found: FleetNode) -> list[Part]:
    """Return the units of a resource: what is in use first, then what is free, then what is unavailable."""
    usable = one.usable if found.row.ready else 0
    in_use = [use for use in one.uses for _ in range(use.count)][: one.count]
    uses = [*in_use, *[None] * (one.count - len(in_use))]
    size = _size(profile, found.geometry) if profile else MAX_SPAN
    shared = SHARED[node_labels.sharing(labels, node_labels.base_of(one.name))] if one.replicas > 1 else ""
    words, span = shared.format(one.replicas), max(1, size // one.replicas)
    parts = []
    for index, use in enumerate(uses):
        device, replica = divmod(index, one.replicas)
        names = [profile, str(device) if profile else "", f"replica {replica}" if shared else ""]
        label, is_usable = " ".join(filter(None, names)), index < usable
        if use:
            parts.append(_part(use, label, span, words, usable=is_usable))
        else:
            parts.append(_nobody(label, span, words, usable=is_usable))
    return parts


def _cut(
    instances: dict[str, list[Part]], url: str, labelled: int, geometry: Geometry | None, whole: int
) -> Iterator[Cell]:
    """Yield the GPUs that are cut into these MIG instances, which are dealt out evenly."""
    if not instances:
        return
    memory = geometry.memory if geometry else MAX_SPAN
    needed = ceil(sum(part.span for parts in instances.values() for part in parts) / memory)
    count = max(labelled - whole, needed, 1)
    by_gpu: dict[int, list[Part]] = defaultdict(list)
    for _, parts in sorted(instances.items()):
        for index, part in enumerate(parts):
            by_gpu[index * count // max(count, len(parts))].append(part)
    for number in range(count):
        yield Cell(f"GPU {whole + number}", url, by_gpu[number] or [_nobody("", MAX_SPAN, usable=True)])


def _profile(base: str, labels: Mapping[str, str]) -> str:
    """Return the MIG profile of a resource's units; empty if they are whole GPUs, or if it names none."""
    try:
        if base.startswith("mig-"):
            return profile_of_resource(base.removeprefix("mig-"))
        return node_labels.single_profile(labels)
    except ValueError:
        return base


def _size(profile: str, geometry: Geometry | None) -> int:
    sizes = {one.name: one.size for one in geometry.profiles} if geometry else {}
    digits = profile.partition("g.")[0]
    return min(MAX_SPAN, sizes.get(profile) or (int(digits) if digits.isdecimal() else 1))


def _sum(one: NodeResource) -> Part:
    words = f"{one.used} of {one.count} in use"
    return Part(words, f"{one.name}, {words}", IN_USE if one.used else FREE)


def _part(use: DeviceUse, label: str, span: int, words: str = "", *, usable: bool) -> Part:
    holder = use.holder
    fill = UNMANAGED if holder.kind == "unmanaged" else IN_USE if use.has_pod else NO_POD
    state = "" if fill == IN_USE else FILLS[fill]
    about = ", ".join(filter(None, [label, holder_words(holder), state, words, "" if usable else FILLS[UNAVAILABLE]]))
    text = label or holder.team or UNMANAGED
    return Part(text, about, fill if usable else UNAVAILABLE, span, holder.team)


def _nobody(label: str, span: int, words: str = "", *, usable: bool) -> Part:
    fill = FREE if usable else UNAVAILABLE
    return Part(label or FILLS[fill], ", ".join(filter(None, [label, FILLS[fill], words])), fill, span)


def holder_words(holder: Holder) -> str:
    if holder.kind == "unmanaged":
        return holder.name
    return f"{holder.team} / {holder.project}" + (f", {holder.member}" if holder.member else ", Job")


def resource_counts(resources: Iterable[NodeResource]) -> list[str]:
    """Return ``mig-1g.10gb 4/16`` of each resource that the device plugin counts: units in use, of all."""
    return [f"{one.name.removeprefix(node_labels.PREFIX)} {one.used}/{one.count}" for one in resources]
