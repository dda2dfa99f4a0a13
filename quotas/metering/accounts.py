"""Reads the ledger as accounts: the capacity of a GPU, or of a resource of a flavor, and its uses in a window.

A GPU that DRA names is an account. What the device plugin counts is one for each flavor and resource, since Kubernetes
names neither the GPU nor, until a pod runs, the node of a hold (ADR 10). What is reserved and names no device, such as
the unused part of a queued Job's quota, is in an account without a name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import NamedTuple, TypeVar

from django.db.models import Model, Q, QuerySet

from quotas.catalog import layouts, versions
from quotas.catalog.versions import FlavorSlices, Versions
from quotas.metering import ledger_starts
from quotas.metering.models import CapacityInterval, ForeignUse, UsageInterval
from quotas.metering.parts import Account, CapacitySpan, Category, Fits, UsageSpan
from quotas.metering.units import GPU, Value

Row = TypeVar("Row", bound=Model)
Span = tuple[datetime, datetime | None]
ONE = Fraction(1)
FOREVER = datetime.max.replace(tzinfo=UTC)


class AccountKey(NamedTuple):
    """``node`` is "" where capacity is counted over the nodes of a flavor, ``name`` that of the GPU or the resource."""

    cluster: str
    flavor: str
    node: str
    name: str


@dataclass
class _Collected:
    capacity: list[CapacitySpan] = field(default_factory=list)
    uses: list[UsageSpan] = field(default_factory=list)


def read(
    start: datetime, end: datetime, cluster: str = "", nodes: Collection[str] | None = None
) -> dict[AccountKey, Account]:
    """Return the accounts with capacity or use in ``[start, end)``, of all clusters or one; a fixed number of queries.
    With ``nodes`` only the GPUs of nodes of these names.

    Capacity that the catalogue does not know yet is left out; if it ends so, it is not offered. Before a cluster's
    capacity was recorded there was as much as was held, and nothing is known of the rest. The weight of what is held is
    in the usage ledger. Slices are those of the catalogue at the time.
    """
    only: dict[str, object] = {"cluster": cluster} if cluster else {}
    only |= {} if nodes is None else {"node__in": nodes}
    catalogue = versions.read(cluster)
    since = ledger_starts.capacity_recorded_since()
    collected: dict[AccountKey, _Collected] = defaultdict(_Collected)
    units: dict[tuple[str, str, str], list[CapacityInterval]] = defaultdict(list)
    for row in _within(CapacityInterval.objects.filter(**only).exclude(offered=None, end=None), start, end):
        if value := row.final_value:
            units[row.cluster_id, row.node, row.name].append(row)
            collected[_key_of_capacity(row)].capacity += _capacity(row, value, catalogue)
    charged: dict[str, list[Span]] = defaultdict(list)
    for usage in _within(UsageInterval.objects.filter(**only), start, end):
        charged[usage.slot].append((usage.start, usage.end))
        slices = catalogue.at(usage.flavor, usage.start)
        account = collected[_key_of_usage(usage, slices)]
        account.uses.append(held(usage))
        known_since = since.get(usage.cluster_id) or end
        if usage.start < known_since:
            account.capacity.append(CapacitySpan(usage.start, min(usage.end or known_since, known_since), usage.gpus))
    for foreign in _within(ForeignUse.objects.filter(**only), start, end):
        name = layouts.parent_gpu(foreign.name) if foreign.kind == GPU else foreign.name
        for row in units[foreign.cluster_id, foreign.node, name]:
            slices = catalogue.at(row.flavor, foreign.start)
            collected[_key_of_capacity(row)].uses += _unmanaged(foreign, row, charged[foreign.slot], slices)
    return {
        key: Account(one.capacity, one.uses, is_gpu=bool(key.node))
        for key, one in collected.items()
        if nodes is None or key.node
    }


def uncovered(start: datetime, end: datetime, covers: Iterable[Span]) -> list[tuple[datetime, datetime]]:
    """Return the times of ``[start, end)`` that none of these intervals covers; one with an end of None is open."""
    found = []
    for begin, until in sorted(covers, key=lambda one: one[0]):
        if start < begin and start < end:
            found.append((start, min(begin, end)))
        start = max(start, until or FOREVER)
    return [*found, (start, end)] if start < end else found


def held(row: UsageInterval) -> UsageSpan:
    """Return the use of an interval, with the weight that was recorded when it began."""
    return UsageSpan(str(row.key), row.start, row.end, row.gpus, Category.HELD, row.device, slot=row.slot)


def _within(rows: QuerySet[Row], start: datetime, end: datetime) -> QuerySet[Row]:
    return rows.filter(Q(end=None) | Q(end__gt=start), start__lt=end)


def _key_of_capacity(row: CapacityInterval) -> AccountKey:
    return AccountKey(row.cluster_id, row.flavor, row.node if row.kind == GPU else "", row.name)


def _capacity(row: CapacityInterval, value: Value, catalogue: Versions) -> Iterator[CapacitySpan]:
    """Yield the capacity, a span for each version of its flavor; all of it is unavailable where its flavor is not
    offered, or no offering of its resource.
    """
    gpus = row.count * value.gpus
    for start, end, slices in catalogue.between(row.flavor, row.start, row.end):
        is_offered = value.offered and not slices.is_hidden("" if row.kind == GPU else row.name)
        unavailable = (row.count - row.available) * value.gpus if is_offered else gpus
        yield CapacitySpan(start, end, gpus, unavailable, _fits(row, slices))


def _fits(row: CapacityInterval, slices: FlavorSlices) -> Fits | None:
    """Return what tells how much of a divided GPU offered slices can take; None where every free unit can be had."""
    if row.kind != GPU or slices.has_fits:
        return slices.fits if row.kind == GPU else None
    layout = row.labels.get("layout")
    return partial(slices.left_of_layout, layout) if layout else None


def _key_of_usage(row: UsageInterval, slices: FlavorSlices) -> AccountKey:
    if row.device:
        return AccountKey(row.cluster_id, row.flavor, row.node, layouts.parent_gpu(row.device))
    return AccountKey(row.cluster_id, row.flavor, "", slices.resource(row.offering))


def _unmanaged(
    foreign: ForeignUse, row: CapacityInterval, charged: Iterable[Span], slices: FlavorSlices
) -> Iterator[UsageSpan]:
    """Yield the foreign use of a unit while it has the capacity of ``row``, without the times in ``charged``; at most
    all of that, since a pod that names its node itself may request any amount.
    """
    gpus = row.final_value.gpus if row.final_value else Fraction(0)
    weight = min(foreign.count, row.count) * gpus
    if foreign.kind == GPU:
        weight = gpus * (slices.part_of_gpu(foreign.name, foreign.count) or ONE)
    begin, until = max(foreign.start, row.start), min(foreign.end or FOREVER, row.end or FOREVER)
    for number, (since, to) in enumerate(uncovered(begin, until, charged)):
        key = f"foreign/{foreign.pk}/{row.pk}/{number}"
        yield UsageSpan(
            key,
            since,
            to,
            weight,
            Category.UNMANAGED,
            foreign.name if foreign.kind == GPU else "",
            began=foreign.start,
            slot=foreign.slot,
            fact=f"{foreign.uid}/{key}",
        )
