"""Nodes and their GPUs as tiles, each with the colour and pattern of the team that uses it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import quote

from django.urls import reverse

from allocations.capacity.fleet_nodes import DeviceUse, FleetNode, Holder, NodeGpu, NodeResource
from allocations.domain.observed_facts import Condition
from portal.core import money

COLOURS, PATTERNS = 8, 3
"""Colours that people with a colour vision deficiency tell apart, and patterns for more teams than those."""
WHOLE = 8
"""Into so many parts a tile is divided if its GPU cannot be."""
MAX_TILES = 32
"""So many GPUs of a resource have a tile of their own; of more there is one tile of all."""
DRIVER_LABELS = {
    "Driver": "nvidia.com/cuda.driver-version.full",
    "CUDA": "nvidia.com/cuda.runtime-version.full",
    "Product": "nvidia.com/gpu.product",
}
GOOD_IF_TRUE = "Ready"
VENDOR, MIG = "nvidia.com/", "nvidia.com/mig-"
FREE, SICK, UNMANAGED = "free", "sick", "no allocation"


@dataclass(frozen=True)
class Swatch:
    """A team's ``key`` of colour and pattern, such as ``3-1``."""

    team: str
    key: str
    colour: int
    pattern: int


@dataclass(frozen=True)
class Part:
    """A part of a tile, in per cent of its width; ``fill`` is a swatch's key, or ``unmanaged``."""

    x: str
    width: str
    fill: str


@dataclass(frozen=True)
class Tile:
    """A GPU, or a unit of a resource. ``words`` are for screen readers and the title."""

    url: str
    label: str
    words: str
    parts: Sequence[Part]
    is_sick: bool


@dataclass(frozen=True)
class TileGroup:
    """The GPUs that DRA names, with an empty ``resource``, or those of a resource, of which ``used`` tells the use."""

    tiles: Sequence[Tile]
    resource: str = ""
    used: str = ""


@dataclass(frozen=True)
class NodeTiles:
    """``flavor`` is empty if the node is not offered. ``held`` is what allocations hold of the flavor as a count."""

    row: FleetNode
    name: str
    flavor: str
    held: str
    url: str
    groups: Sequence[TileGroup]
    problem: str


@dataclass(frozen=True)
class Fleet:
    nodes: Sequence[NodeTiles]
    legend: Sequence[Swatch]


@dataclass(frozen=True)
class HolderLine:
    """``url`` is empty for what is unmanaged."""

    words: str
    url: str
    part: str


@dataclass(frozen=True)
class ConditionLine:
    type: str
    condition: Condition
    is_good: bool


def tiles(found: Iterable[FleetNode], teams: Iterable[tuple[str, int]], held: Mapping[str, Mapping[str, int]]) -> Fleet:
    """Return the nodes as tiles, and the swatches of the teams on them. ``teams`` are the slugs of all, each with a
    number that it keeps, so that neither a new team nor one that is deleted changes the colour of another. ``held`` are
    the slices that are held as a count, by flavor and offering.
    """
    swatches = {team: _swatch(team, number) for team, number in teams}
    nodes = [_node(one, swatches, held) for one in found]
    groups = (group for node in nodes for group in node.groups)
    used = {part.fill for group in groups for tile in group.tiles for part in tile.parts}
    return Fleet(nodes, [one for one in swatches.values() if one.key in used and _is_shown(one, nodes)])


def node_url(cluster: str, name: str) -> str:
    return reverse("fleet-node", args=[cluster, name])


def holder_lines(uses: Iterable[DeviceUse]) -> list[HolderLine]:
    return [_holder_line(use) for use in uses]


def condition_lines(found: FleetNode) -> list[ConditionLine]:
    """Return the conditions of a node, what is wrong first."""
    conditions = found.facts.get("conditions", {}) if found.facts else {}
    lines = [
        ConditionLine(name, one, one.get("status") == ("True" if name == GOOD_IF_TRUE else "False"))
        for name, one in sorted(conditions.items())
    ]
    return sorted(lines, key=lambda line: line.is_good)


def driver_lines(found: FleetNode) -> list[tuple[str, str]]:
    """Return what the node's labels tell of driver, CUDA and product."""
    labels = found.facts["labels"] if found.facts else {}
    return [(word, labels[name]) for word, name in DRIVER_LABELS.items() if name in labels]


def problem(found: FleetNode) -> str:
    """Return why something of the node cannot be used; empty if all can."""
    row = found.row
    if row.problem:
        return row.problem
    if found.facts and found.facts["unschedulable"]:
        return "It is cordoned: new pods stay away until somebody uncordons it."
    if not row.ready:
        return "Kubernetes reports it as not ready."
    return "" if row.flavor_id else "It is not offered."


def _swatch(team: str, number: int) -> Swatch:
    colour, pattern = number % COLOURS, number // COLOURS % PATTERNS
    return Swatch(team, f"{colour}-{pattern}", colour, pattern)


def _is_shown(swatch: Swatch, nodes: Iterable[NodeTiles]) -> bool:
    uses = (use for node in nodes for use in _uses(node.row))
    return any(use.holder.team == swatch.team for use in uses)


def _uses(found: FleetNode) -> Iterator[DeviceUse]:
    for gpu in found.gpus:
        yield from gpu.uses
    for resource in found.resources:
        yield from resource.uses


def _node(found: FleetNode, swatches: dict[str, Swatch], held: Mapping[str, Mapping[str, int]]) -> NodeTiles:
    row = found.row
    url = node_url(row.cluster_id, row.name)
    named = TileGroup([_gpu(url, gpu, swatches, is_usable=row.ready) for gpu in found.gpus])
    counted = [_resource(url, resource, swatches, is_usable=row.ready) for resource in found.resources]
    flavor = row.flavor.name if row.flavor else ""
    groups = [group for group in (named, *counted) if group.tiles]
    words = ", ".join(f"{count} × {offering}" for offering, count in held.get(flavor, {}).items())
    return NodeTiles(found, row.name, flavor, words, url, groups, problem(found))


def _gpu(url: str, gpu: NodeGpu, swatches: dict[str, Swatch], *, is_usable: bool) -> Tile:
    width = gpu.slices or WHOLE
    is_sick = not (gpu.is_healthy and is_usable)
    parts: list[Part] = []
    column = 0
    for use in gpu.uses:
        start, size = use.placement or (column, width if len(gpu.uses) == 1 else max(1, width // len(gpu.uses)))
        parts.append(_part(start, size, width, use.holder, swatches))
        column = start + size
    return Tile(
        url=f"{url}#{quote(gpu.name)}",
        label=_label(gpu.uses, is_sick=is_sick),
        words=f"{gpu.name}: {_words(gpu.uses, is_sick=is_sick)}",
        parts=parts,
        is_sick=is_sick,
    )


def _resource(url: str, resource: NodeResource, swatches: dict[str, Swatch], *, is_usable: bool) -> TileGroup:
    """Return a tile for each GPU of a resource, in so many parts as it has replicas, and one for all MIG devices of a
    profile or of very many. What is in use comes first, then what is free, then what cannot be used.
    """
    is_one = resource.name.startswith(MIG) or resource.count > MAX_TILES * resource.replicas
    width = resource.count if is_one else resource.replicas
    unusable = max(0, resource.count - resource.usable) if is_usable else resource.count
    tiles = []
    for first in range(0, resource.count, width):
        placed = list(_between(resource.uses, first, first + width))
        uses, is_sick = [use for use, _, _ in placed], first >= resource.count - unusable
        tiles.append(
            Tile(
                url=f"{url}#{quote(resource.name)}",
                label=_label(uses, is_sick=is_sick),
                words=f"{resource.name}: {_words(uses, is_sick=is_sick)}",
                parts=[_part(start - first, size, width, use.holder, swatches) for use, start, size in placed],
                is_sick=is_sick,
            )
        )
    name = resource.name.removeprefix(VENDOR)
    words = f"{resource.used} of {resource.count} in use"
    return TileGroup(tiles, name, f"{words}, {unusable} not usable" if unusable else words)


def _between(uses: Iterable[DeviceUse], start: int, end: int) -> Iterator[tuple[DeviceUse, int, int]]:
    """Yield the uses that have units from ``start`` to ``end``, as they are counted one after the other, each with the
    first of them and their number.
    """
    begin = 0
    for use in uses:
        first, last = max(begin, start), min(begin + use.count, end)
        if first < last:
            yield use, first, last - first
        begin += use.count


def _part(start: int, size: int, of: int, holder: Holder, swatches: dict[str, Swatch]) -> Part:
    x, width = (money.text(Fraction(100 * number, of), 2) for number in (start, size))
    return Part(x, width, swatches[holder.team].key if holder.team in swatches else "unmanaged")


def _label(uses: Sequence[DeviceUse], *, is_sick: bool) -> str:
    teams = list(dict.fromkeys(use.holder.team or UNMANAGED for use in uses))
    held = teams[0] if len(teams) == 1 else f"{len(teams)} teams" if teams else FREE
    return (f"{SICK}, {held}" if teams else SICK) if is_sick else held


def _words(uses: Sequence[DeviceUse], *, is_sick: bool) -> str:
    found = "; ".join(_holder(use.holder) + (f", {use.profile}" if use.profile else "") for use in uses)
    return ", ".join(filter(None, ["cannot be used" if is_sick else "", found or FREE]))


def _holder(holder: Holder) -> str:
    if holder.kind == "unmanaged":
        return f"{holder.name}, without allocation"
    return f"{holder.team} / {holder.project}" + (f", {holder.member}" if holder.member else ", Job")


def _holder_line(use: DeviceUse) -> HolderLine:
    holder, part = use.holder, use.profile
    if use.placement:
        start, size = use.placement
        part = f"{use.profile}, memory slices {start} to {start + size - 1}" if size > 1 else f"{part}, slice {start}"
    if use.count > 1:
        part = f"{use.count} units"
    url = "" if holder.kind == "unmanaged" else reverse(holder.kind, args=[holder.id])
    return HolderLine(_holder(holder), url, part)
