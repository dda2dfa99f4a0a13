"""Strips: what GPUs were over time, as paths of an SVG, with the hours and the money beside them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from frontend.presenters import amounts, fleet_hours
from frontend.presenters.asset_links import AssetLinks
from frontend.presenters.strip_axis import WIDTH
from portal.core.errors import Invalid
from quotas.costs import windows
from quotas.costs.asset_strips import FlavorStrip, GpuStrip, NodeKey, StripPart
from quotas.costs.assets import Asset, Holder
from quotas.costs.calendar import Calendar
from quotas.costs.rating import RatedUsage, Window
from quotas.metering.hours import DAY
from quotas.metering.parts import Category

HEIGHT = 28
"""The units of a strip; 28 has halves, quarters, sevenths and eighths of them nearly whole."""
MAX_DAYS = 92
"""The longest time that is shown."""
MAX_PROJECTS = 3
MAX_SHAPES = 12
"""So many holders of a strip have a shape with their name; all others have one together."""
UNKNOWN = "unknown"
TITLES: dict[Category, str] = {
    category: title for category, title in fleet_hours.TITLES.items() if category != Category.VARIANCE
}
"""The categories in the order in which they are drawn, from the top."""


class Shape(NamedTuple):
    """A path of a category; ``shade`` is 0 or 1 by turns, so that one holder is told from the next."""

    category: str
    path: str
    title: str
    shade: int = 0


@dataclass(frozen=True)
class Cell:
    """The GPU-hours and the cost of a category."""

    title: str
    hours: str
    cost: str
    is_zero: bool = False


class HolderLink(NamedTuple):
    """A project, what it costs on the node, and its GPU-hours."""

    name: str
    url: str
    hours: str


@dataclass(frozen=True)
class StripLine:
    """A GPU, a node or a flavor. ``summary`` says in words what the shapes show; ``holders`` are
    projects, that which held most first. ``url`` leads to the flavor, or to what a GPU was as a table."""

    name: str
    capacity: str
    cells: Sequence[Cell]
    shapes: Sequence[Shape] = ()
    summary: str = ""
    holders: Sequence[HolderLink] = ()
    more_holders: int = 0
    url: str = ""


@dataclass(frozen=True)
class NodeGroup:
    """A node of a flavor with its GPUs; ``is_first`` of its flavor on the page. ``node_url`` leads to the node as it is
    now, ``flavor_url`` to its flavor, both "" where they have no page; the line's to what its GPUs were, as a table.
    """

    key: NodeKey
    line: StripLine
    gpus: Sequence[StripLine] = field(default_factory=list)
    is_first: bool = False
    node_url: str = ""
    flavor_url: str = ""


def parse_window(text: str, now: datetime, calendar: Calendar) -> Window:
    """Return a window as REST takes it. Raises Invalid, also for one above MAX_DAYS."""
    window = windows.parse(text, now, calendar)
    if window.end - window.start > MAX_DAYS * DAY:
        raise Invalid({"window": [f"Choose at most {MAX_DAYS} days."]})
    return window


def flavor_lines(found: Iterable[FlavorStrip], window: Window, currency: str, links: AssetLinks) -> list[StripLine]:
    return [_flavor_line(one, window, currency, links) for one in found]


def total_line(found: Sequence[FlavorStrip], currency: str) -> StripLine:
    """Return what all flavors add up to."""
    sums: dict[Category, RatedUsage] = defaultdict(RatedUsage)
    for one in found:
        for category, usage in one.sums.items():
            sums[category] += usage
    return _line("All", sums, currency, is_known=all(one.is_capacity_known for one in found))


def node_groups(
    strips: Iterable[GpuStrip], sums: Mapping[NodeKey, Asset], window: Window, currency: str, links: AssetLinks
) -> list[NodeGroup]:
    """Return the nodes of a page, each with its GPUs, in the order of the strips."""
    gpus: dict[NodeKey, list[StripLine]] = defaultdict(list)
    for one in strips:
        key = one.asset.key
        gpus[NodeKey(key.flavor, key.cluster, key.node)].append(_gpu_line(one, window, currency, links))
    found, before = [], ""
    for node, lines in gpus.items():
        line = _asset_line(node.node, sums[node], currency, links)
        is_first = node.flavor != before
        found.append(NodeGroup(node, line, lines, is_first, links.node(node), links.flavor(node.flavor)))
        before = node.flavor
    return found


def _gpu_line(one: GpuStrip, window: Window, currency: str, links: AssetLinks) -> StripLine:
    asset = one.asset
    return _asset_line(asset.key.name, asset, currency, links, shapes(one.parts, window, Fraction(1), asset.holders))


def _asset_line(name: str, asset: Asset, currency: str, links: AssetLinks, drawn: Sequence[Shape] = ()) -> StripLine:
    projects: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for holder, usage in asset.holders.items():
        projects[holder.team, holder.project] += usage.gpu_hours
    ordered = sorted(projects.items(), key=lambda item: (-item[1], item[0]))
    holders = [
        HolderLink(f"{team} / {project}", links.project(project, asset.key.node), amounts.number(hours))
        for (team, project), hours in ordered[:MAX_PROJECTS]
    ]
    line = _line(name, asset.parts, currency, drawn, is_known=asset.is_capacity_known)
    more = max(0, len(ordered) - MAX_PROJECTS)
    return replace(line, holders=holders, more_holders=more, url=links.intervals(asset.key))


def _flavor_line(one: FlavorStrip, window: Window, currency: str, links: AssetLinks) -> StripLine:
    by_time: dict[datetime, Fraction] = defaultdict(Fraction)
    for part in one.parts:
        by_time[part.start] += part.gpus if part.category in TITLES else 0
    highest = max(by_time.values(), default=Fraction(0))
    drawn = shapes(one.parts, window, highest) if highest else ()
    name = one.key.flavor or "not offered"
    line = _line(name, one.sums, currency, drawn, is_known=one.is_capacity_known)
    return replace(line, url=links.flavor(one.key.flavor))


def _line(
    name: str,
    sums: Mapping[Category, RatedUsage],
    currency: str,
    drawn: Sequence[Shape] = (),
    *,
    is_known: bool,
) -> StripLine:
    nothing = RatedUsage()
    cells = [
        Cell(title, _hours(usage), amounts.money(usage.cost, currency), is_zero=not usage.gpu_hours)
        if is_known or category is Category.HELD
        else Cell(title, UNKNOWN, UNKNOWN)
        for category, title in TITLES.items()
        for usage in (sums.get(category, nothing),)
    ]
    capacity = sum((usage.gpu_hours for usage in sums.values()), Fraction(0))
    return StripLine(
        name=name,
        capacity=amounts.number(capacity) if is_known else UNKNOWN,
        cells=cells,
        shapes=drawn,
        summary=", ".join(
            f"{cell.title.lower()} {cell.hours} h" for cell in cells if cell.hours != UNKNOWN and not cell.is_zero
        ),
    )


def shapes(
    parts: Sequence[StripPart], window: Window, highest: Fraction, holders: Mapping[Holder, RatedUsage] | None = None
) -> list[Shape]:
    """Return the parts as paths in a box of WIDTH and HEIGHT: time from left to right, at each moment one category
    above the other. ``highest`` is the GPUs of the full height. What is narrower than a unit is left out.
    """
    named = {holder: number for number, (holder, _) in enumerate(_by_hours(holders or {})[:MAX_SHAPES])}
    paths: dict[tuple[Category, Holder | None], list[str]] = defaultdict(list)
    for x, width, stack in _columns(parts, window, highest):
        for category, holder, y, height in stack:
            paths[category, holder if holder in named else None].append(f"M{x} {y}h{width}v{height}h-{width}z")
    found = []
    for (category, holder), pieces in paths.items():
        title = TITLES[category]
        if holder is not None and holders:
            title = f"{holder.team} / {holder.project}: {_hours(holders[holder])} GPU-hours"
        found.append(Shape(category.value, "".join(pieces), title, named[holder] % 2 if holder in named else 0))
    return found


Stack = list[tuple[Category, Holder | None, int, int]]
"""Category, holder, top and height of what there is at a moment."""


def _columns(parts: Sequence[StripPart], window: Window, highest: Fraction) -> Iterator[tuple[int, int, Stack]]:
    """Yield left and width of each time in which nothing changes, and what there is; equal ones that adjoin are one."""
    order = {category: number for number, category in enumerate(TITLES)}
    shown = sorted(
        (one for one in parts if one.category in TITLES and one.gpus > 0), key=lambda one: order[one.category]
    )
    scale = lcm(highest.denominator, *(part.gpus.denominator for part in shown))
    units = [part.gpus.numerator * (scale // part.gpus.denominator) for part in shown]
    full = highest.numerator * (scale // highest.denominator)
    changes: dict[int, set[int]] = defaultdict(set)
    for number, part in enumerate(shown):
        for edge in (_x(part.start, window), _x(part.end, window)):
            changes[edge] ^= {number}  # of no width: in and out again
    running: set[int] = set()
    x, stack = 0, Stack()
    for left in sorted(changes):
        running ^= changes[left]
        there = _stack([(shown[number], units[number]) for number in sorted(running)], full)
        if there != stack:
            if stack:
                yield x, left - x, stack
            x, stack = left, there


def _x(moment: datetime, window: Window) -> int:
    return round(WIDTH * ((moment - window.start) / (window.end - window.start)))


def _stack(parts: Iterable[tuple[StripPart, int]], full: int) -> Stack:
    """Return the parts, each with its amount, one above the other; ``full`` is the amount of the whole height."""
    found, done, top = Stack(), 0, 0
    for part, amount in parts:
        done += amount
        end = _rounded(HEIGHT * done, full)
        if height := max(0, min(HEIGHT, end) - top):
            found.append((part.category, part.holder, top, height))
        top = end
    return found


def _rounded(amount: int, parts: int) -> int:
    """Return the quotient rounded as a fraction is, half to even; whole numbers take a tenth of its time."""
    whole, rest = divmod(amount, parts)
    return whole + (2 * rest > parts or (2 * rest == parts and whole % 2))


def _by_hours(holders: Mapping[Holder, RatedUsage]) -> list[tuple[Holder, RatedUsage]]:
    return sorted(holders.items(), key=lambda item: (-item[1].gpu_hours, item[0]))


def _hours(usage: RatedUsage) -> str:
    return amounts.number(usage.gpu_hours)
