"""What each GPU of some nodes was at every moment of a window, and what it adds up to; for platform staff.

It is read from the ledger of these nodes alone, so that a page of a large fleet costs what its own GPUs have. What a
device plugin counts is on no node (`quotas.costs.assets`); a flavor has it in its steps.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from django.db.models import Q

from portal.tenants import access
from portal.tenants.access import Person
from quotas.costs import filters, fleet_costs, rates, rating
from quotas.costs.assets import Asset, AssetKey, AssetKind, Holder
from quotas.costs.filters import Filter
from quotas.costs.fleet_costs import FleetCosts
from quotas.costs.rates import PriceList
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.metering import accounts, ledger_starts, parts
from quotas.metering.models import CapacityInterval, UsageInterval
from quotas.metering.parts import MICROSECOND, MICROSECONDS_PER_HOUR, Category, Part
from quotas.metering.rolled_up import Detail


class FlavorKey(NamedTuple):
    cluster: str
    flavor: str


class NodeKey(NamedTuple):
    """A node that had GPUs of a flavor."""

    flavor: str
    cluster: str
    node: str


class StripPart(NamedTuple):
    """``gpus`` of a category in ``[start, end)``; of what is held with its holder."""

    start: datetime
    end: datetime
    category: Category
    gpus: Fraction
    holder: Holder | None = None


@dataclass(frozen=True)
class GpuStrip:
    """A GPU, its sums, and its parts by time."""

    asset: Asset
    parts: Sequence[StripPart]


@dataclass(frozen=True)
class FlavorStrip:
    """A flavor of a cluster: the sums of its categories, and what each step had on average."""

    key: FlavorKey
    sums: Mapping[Category, RatedUsage]
    parts: Sequence[StripPart]
    is_capacity_known: bool


class _Use(NamedTuple):
    """Who holds an interval, and what its price depends on."""

    holder: Holder
    offering: str
    slice_share: Fraction
    is_charged: bool


def nodes(user: Person, window: Window, where: Filter, now: datetime) -> list[NodeKey]:
    """Return the nodes that had GPUs that DRA names, by flavor, cluster and name; one query.

    Raises Forbidden for everybody but platform staff.
    """
    access.require(user, "platform.view", None)
    within = Q(end=None) | Q(end__gt=window.start)
    rows = CapacityInterval.objects.filter(within, kind=CapacityInterval.Kind.GPU, start__lt=min(window.end, now))
    found = rows.exclude(offered=None, end=None).order_by().values_list("flavor", "cluster", "node").distinct()
    keys = (NodeKey(*values) for values in found)
    return sorted(key for key in keys if filters.may_keep(where, key._asdict()))


def by_idle_cost(keys: Iterable[NodeKey], window: Window, now: datetime) -> list[NodeKey] | None:
    """Return the nodes with the highest cost of what was idle first; None if too much of the window is not rolled up.
    It reads the hours of all nodes.
    """
    costs = fleet_costs.read([window.start, window.end], now, Detail.NODE)
    if costs is None:
        return None
    idle: dict[NodeKey, RatedUsage] = defaultdict(RatedUsage)
    for one in costs.parts:
        if one.category is Category.IDLE and one.node:
            idle[NodeKey(one.flavor, one.cluster, one.node)] += fleet_costs.usage(one)
    return sorted(keys, key=lambda key: (-idle[key].priced_cost, -idle[key].gpu_hours, key))


def of_nodes(user: Person, keys: Collection[NodeKey], window: Window, now: datetime) -> list[GpuStrip]:
    """Return the GPUs of these nodes until ``now``, by node in the given order and name; a fixed number of queries,
    none without a node. The parts of a GPU add up to its capacity at every moment.

    Raises Forbidden for everybody but platform staff.
    """
    access.require(user, "platform.view", None)
    end = min(window.end, now)
    if not keys or window.start >= end:
        return []
    order = {key: number for number, key in enumerate(keys)}
    names = {key.node for key in keys}
    found = accounts.read(window.start, end, nodes=names)
    uses, prices = _uses(names, window.start, end), rates.read(key.flavor for key in keys)
    known = {one for one, at in ledger_starts.capacity_recorded_since().items() if at and at <= window.start}
    strips = []
    for key, account in found.items():
        if NodeKey(key.flavor, key.cluster, key.node) in order:
            asset = Asset(AssetKey(key.cluster, AssetKind.GPU, key.flavor, key.node, key.name), key.cluster in known)
            split = parts.split(account, window.start, end)
            _add_up(asset, split, uses, prices)
            strips.append(GpuStrip(asset, [_strip_part(part, uses) for part in split]))
    return sorted(strips, key=lambda one: (order[_node(one.asset.key)], _natural(one.asset.key.name)))


def node_sums(strips: Iterable[GpuStrip]) -> dict[NodeKey, Asset]:
    """Return what the GPUs of each node add up to."""
    found: dict[NodeKey, Asset] = {}
    for one in strips:
        key = one.asset.key
        node = found.setdefault(
            _node(key), Asset(key._replace(kind=AssetKind.NODE, name=""), one.asset.is_capacity_known)
        )
        for category, usage in one.asset.parts.items():
            node.parts[category] += usage
        for holder, usage in one.asset.holders.items():
            node.holders[holder] += usage
    return found


def of_flavors(user: Person, edges: Sequence[datetime], where: Filter, now: datetime) -> list[FlavorStrip] | None:
    """Return the flavors between ``edges`` until ``now``, of which each step has the average; None if too much of the
    window is not rolled up. A filter by node keeps all flavors.

    Raises Forbidden for everybody but platform staff.
    """
    access.require(user, "platform.view", None)
    costs = fleet_costs.read(edges, now)
    if costs is None:
        return None
    since = ledger_starts.capacity_recorded_since()
    return [
        FlavorStrip(key, sums, by_step, is_capacity_known=(at := since.get(key.cluster)) is not None and at <= edges[0])
        for key, (sums, by_step) in sorted(_by_flavor(costs, edges, now).items())
        if filters.may_keep(where, key._asdict())
    ]


def _by_flavor(
    costs: FleetCosts, edges: Sequence[datetime], now: datetime
) -> dict[FlavorKey, tuple[dict[Category, RatedUsage], list[StripPart]]]:
    priced: dict[tuple[FlavorKey, Category, Decimal | None], Fraction] = defaultdict(Fraction)
    hours: dict[FlavorKey, dict[tuple[int, Category], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for one in costs.parts:
        key = FlavorKey(one.cluster, one.flavor)
        priced[key, one.category, one.price] += one.gpu_hours
        hours[key][one.step, one.category] += one.gpu_hours
    sums: dict[FlavorKey, dict[Category, RatedUsage]] = defaultdict(lambda: defaultdict(RatedUsage))
    for (key, category, price), amount in priced.items():
        sums[key][category] += rated(amount, None if price is None else Fraction(price))
    return {
        key: (
            of_flavor,
            [
                StripPart(edges[step - 1], end, category, amount / _hours(edges[step - 1], end))
                for (step, category), amount in sorted(hours[key].items())
                if (end := min(edges[step], now)) > edges[step - 1]
            ],
        )
        for key, of_flavor in sums.items()
    }


def _uses(names: Collection[str], start: datetime, end: datetime) -> dict[str, _Use]:
    """Return who held what on these nodes, by the key of the interval; read last, as in `rollups.read`."""
    rows = UsageInterval.objects.filter(Q(end=None) | Q(end__gt=start), node__in=names, start__lt=end).order_by()
    columns = ("key", "holder_id", "team", "project", "offering", "gpu_share_numerator", "gpu_share_denominator")
    return {
        str(key): _Use(Holder(*holder), offering, Fraction(numerator, denominator), not uncharged)
        for key, *holder, offering, numerator, denominator, uncharged in rows.values_list(*columns, "uncharged")
    }


def _add_up(asset: Asset, split: Iterable[Part], uses: Mapping[str, _Use], prices: PriceList) -> None:
    """Add the parts to the sums of the asset, as they are rated in roll-ups."""
    amounts: dict[tuple[Category, Holder | None, Fraction | None, int], int] = defaultdict(int)
    of_flavor = prices.rates.get(asset.key.flavor, ())
    for part in split:
        use = uses.get(part.key)
        listed, share = (prices.lists.get(use.offering, ()), use.slice_share) if use else ((), rating.ONE)
        is_charged = use is None or use.is_charged
        holder = use.holder if use else None
        for price, since, until in rating.by_price(
            of_flavor, part.start, part.end, listed=listed, slice_share=share, is_charged=is_charged
        ):
            amount = part.gpus.numerator * ((until - since) // MICROSECOND)
            amounts[part.category, holder, price, part.gpus.denominator] += amount
    for (category, holder, price, denominator), amount in amounts.items():
        usage = rated(Fraction(amount, denominator * MICROSECONDS_PER_HOUR), price)
        asset.parts[category] += usage
        if holder:
            asset.holders[holder] += usage


def _strip_part(part: Part, uses: Mapping[str, _Use]) -> StripPart:
    use = uses.get(part.key)
    return StripPart(part.start, part.end, part.category, part.gpus, use.holder if use else None)


def _node(key: AssetKey) -> NodeKey:
    return NodeKey(key.flavor, key.cluster, key.node)


def _natural(name: str) -> tuple[int, str]:
    """Return what puts gpu-10 after gpu-9."""
    return len(name), name


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction((end - start) // MICROSECOND, MICROSECONDS_PER_HOUR)
