"""Nodes with their GPUs as cells, and the page of a node in words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from django.urls import reverse

from allocations.capacity.fleet_nodes import DeviceUse, FleetNode
from allocations.domain.observed_facts import Condition
from frontend.presenters import fleet_cells
from frontend.presenters.fleet_cells import Cell

DRIVER_LABELS = {
    "Driver": "nvidia.com/cuda.driver-version.full",
    "CUDA": "nvidia.com/cuda.runtime-version.full",
    "Product": "nvidia.com/gpu.product",
}
GOOD_IF_TRUE = "Ready"


@dataclass(frozen=True)
class Run:
    """Parts of a node beside each other that look the same, in per cent of all its GPUs."""

    x: str
    width: str
    fill: str
    colour: int


@dataclass(frozen=True)
class NodeRow:
    """``flavor`` is empty if the node is not offered; ``counts`` are of what a device plugin counts."""

    name: str
    url: str
    cluster: str
    flavor: str
    cells: Sequence[Cell]
    counts: Sequence[str]
    problem: str

    @property
    def words(self) -> str:
        """Return how many parts of its GPUs have each fill: ``h100-0: 6 held, used by a pod, 2 free``."""
        fills = [part.fill for cell in self.cells for part in cell.parts]
        found = [f"{fills.count(fill)} {word}" for fill, word in fleet_cells.FILLS.items() if fill in fills]
        return f"{self.name}: {', '.join(found)}"

    @cached_property
    def runs(self) -> list[Run]:
        return list(_runs(self.cells))


@dataclass(frozen=True)
class Fleet:
    """``legend`` are the teams on these nodes with their colours."""

    nodes: Sequence[NodeRow]
    legend: Sequence[tuple[str, int]]


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


def rows(found: Iterable[FleetNode]) -> Fleet:
    """Return the nodes with the teams on them."""
    nodes = [_row(one) for one in found]
    teams = {part.team for node in nodes for cell in node.cells for part in cell.parts if part.team}
    return Fleet(nodes, [(team, fleet_cells.colour(team)) for team in sorted(teams)])


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
        return "Cordoned: new pods stay away until it is uncordoned."
    if not row.ready:
        return "Not ready, as Kubernetes reports it."
    return "" if row.flavor_id else "Not offered."


def _row(found: FleetNode) -> NodeRow:
    row = found.row
    url = node_url(row.cluster_id, row.name)
    return NodeRow(
        name=row.name,
        url=url,
        cluster=row.cluster_id,
        flavor=row.flavor.name if row.flavor else "",
        cells=fleet_cells.cells(found, url),
        counts=fleet_cells.resource_counts(found.resources),
        problem=problem(found),
    )


def _runs(cells: Sequence[Cell]) -> Iterator[Run]:
    """Yield the parts in order; each GPU has the same width."""
    start = 0.0
    parts = [(part, 100 * part.span / _width(cell) / len(cells)) for cell in cells for part in cell.parts]
    for (fill, team), group in groupby(parts, key=lambda one: (one[0].fill, one[0].team)):
        width = sum(share for _, share in group)
        yield Run(f"{start:.2f}", f"{width:.2f}", fill, fleet_cells.colour(team))
        start += width


def _width(cell: Cell) -> int:
    return sum(part.span for part in cell.parts)


def _holder_line(use: DeviceUse) -> HolderLine:
    holder, part = use.holder, use.profile
    if use.placement:
        start, size = use.placement
        part = f"{use.profile}, memory slices {start} to {start + size - 1}" if size > 1 else f"{part}, slice {start}"
    if use.count > 1:
        part = f"{use.count} slices"
    if not use.has_pod:
        part = f"{part}, held without a pod" if part else "held without a pod"
    url = "" if holder.kind == "unmanaged" else reverse(holder.kind, args=[holder.id])
    return HolderLine(fleet_cells.holder_words(holder), url, part)
