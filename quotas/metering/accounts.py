"""Reads the ledger as accounts: the capacity of a GPU, or of a resource of a flavor, and its uses in a window.

A GPU that DRA names is an account. What the device plugin counts is one for each flavor and resource, since Kubernetes
names neither the GPU nor, until a pod runs, the node of a hold (ADR 10). What is reserved and names no device, such as
the unused part of a queued Job's quota, is in an account without a name.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple, TypeVar

from django.db.models import Min, Model, Q, QuerySet

from quotas.catalog import layouts, published, usable_part
from quotas.catalog.mig_tables import Geometry, geometry_of
from quotas.catalog.models import Flavor, Kind, Offering
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


class _Parts(NamedTuple):
    """The parts of a GPU that offered slices are: of MIG devices by flavor and profile, which is written as in names of
    devices; of one share by flavor.
    """

    mig: Mapping[tuple[str, str], Fraction]
    shared: Mapping[str, Fraction]


@dataclass
class _Collected:
    capacity: list[CapacitySpan] = field(default_factory=list)
    uses: list[UsageSpan] = field(default_factory=list)


def read(start: datetime, end: datetime, cluster: str = "") -> dict[AccountKey, Account]:
    """Return the accounts with capacity or use in ``[start, end)``, of all clusters or one; a fixed number of queries.

    Capacity that the catalogue does not know yet is left out; if it ends so, it is not offered. Before a cluster's
    capacity was recorded there was as much as was held, and nothing is known of the rest. Held uses are charged what
    the usage ledger says, others their weight.
    """
    only = {"cluster": cluster} if cluster else {}
    offerings = {row.key: row for row in Offering.objects.select_related("flavor")}
    parts = _parts_of_offerings(offerings.values())
    since = dict(CapacityInterval.objects.filter(**only).order_by().values_list("cluster").annotate(Min("start")))
    collected: dict[AccountKey, _Collected] = defaultdict(_Collected)
    units: dict[tuple[str, str, str], list[CapacityInterval]] = defaultdict(list)
    for row in _within(CapacityInterval.objects.filter(**only).exclude(offered=None, end=None), start, end):
        if value := row.final_value:
            units[row.cluster_id, row.node, row.name].append(row)
            collected[_key_of_capacity(row)].capacity.append(_capacity(row, value))
    charged: dict[str, list[Span]] = defaultdict(list)
    for usage in _within(UsageInterval.objects.filter(**only), start, end):
        charged[usage.slot].append((usage.start, usage.end))
        account = collected[_key_of_usage(usage, offerings)]
        account.uses.append(_held(usage, parts))
        known_since = since.get(usage.cluster_id, end)
        if usage.start < known_since:
            account.capacity.append(CapacitySpan(usage.start, min(usage.end or known_since, known_since), usage.gpus))
    for foreign in _within(ForeignUse.objects.filter(**only), start, end):
        name = layouts.parent_gpu(foreign.name) if foreign.kind == GPU else foreign.name
        for row in units[foreign.cluster_id, foreign.node, name]:
            collected[_key_of_capacity(row)].uses += _unmanaged(foreign, row, charged[foreign.slot], parts)
    fits = _fits(offerings.values())
    return {
        key: Account(one.capacity, one.uses, is_gpu=bool(key.node), fits=fits.get(key.flavor) if key.node else None)
        for key, one in collected.items()
    }


def uncovered(start: datetime, end: datetime, covers: Iterable[Span]) -> list[tuple[datetime, datetime]]:
    """Return the times of ``[start, end)`` that none of these intervals covers; one with an end of None is open."""
    found = []
    for begin, until in sorted(covers, key=lambda one: one[0]):
        if start < begin and start < end:
            found.append((start, min(begin, end)))
        start = max(start, until or FOREVER)
    return [*found, (start, end)] if start < end else found


def _within(rows: QuerySet[Row], start: datetime, end: datetime) -> QuerySet[Row]:
    return rows.filter(Q(end=None) | Q(end__gt=start), start__lt=end)


def _key_of_capacity(row: CapacityInterval) -> AccountKey:
    return AccountKey(row.cluster_id, row.flavor, row.node if row.kind == GPU else "", row.name)


def _capacity(row: CapacityInterval, value: Value) -> CapacitySpan:
    """Return the capacity; all of it is unavailable where its flavor is not offered."""
    unavailable = row.count - row.available if value.offered else row.count
    return CapacitySpan(row.start, row.end, row.count * value.gpus, unavailable * value.gpus)


def _key_of_usage(row: UsageInterval, offerings: Mapping[str, Offering]) -> AccountKey:
    if row.device:
        return AccountKey(row.cluster_id, row.flavor, row.node, layouts.parent_gpu(row.device))
    offering = offerings.get(row.offering)
    return AccountKey(row.cluster_id, row.flavor, "", offering.resource if offering else "")


def _held(row: UsageInterval, parts: _Parts) -> UsageSpan:
    """Return the use; on a GPU it takes the whole part that its device is, even if it is charged less."""
    device, charge = row.device, row.gpus
    whole = _part_of_gpu(device, row.count, row.flavor, parts) if device else None
    weight = max(charge, whole or charge)
    return UsageSpan(str(row.key), row.start, row.end, weight, Category.HELD, device, charge=charge)


def _unmanaged(
    foreign: ForeignUse, row: CapacityInterval, charged: Iterable[Span], parts: _Parts
) -> Iterator[UsageSpan]:
    """Yield the foreign use of a unit while it has the capacity of ``row``, without the times in ``charged``; at most
    all of that, since a pod that names its node itself may request any amount.
    """
    gpus = row.final_value.gpus if row.final_value else Fraction(0)
    weight = min(foreign.count, row.count) * gpus
    if foreign.kind == GPU:
        weight = gpus * (_part_of_gpu(foreign.name, foreign.count, row.flavor, parts) or ONE)
    begin, until = max(foreign.start, row.start), min(foreign.end or FOREVER, row.end or FOREVER)
    for number, (since, to) in enumerate(uncovered(begin, until, charged)):
        key = f"foreign/{foreign.pk}/{row.pk}/{number}"
        yield UsageSpan(key, since, to, weight, Category.UNMANAGED, foreign.name if foreign.kind == GPU else "", weight)


def _parts_of_offerings(offerings: Iterable[Offering]) -> _Parts:
    mig: dict[tuple[str, str], Fraction] = {}
    shared: dict[str, Fraction] = {}
    for one in offerings:
        if one.kind == Kind.MIG:
            mig.setdefault((one.flavor.name, layouts.device_label(one.profile)), one.gpu_share)
        elif one.kind == Kind.SHARED:
            shared.setdefault(one.flavor.name, one.gpu_share)
    return _Parts(mig, shared)


def _part_of_gpu(device: str, count: int, flavor: str, parts: _Parts) -> Fraction | None:
    """Return the part of its GPU that a device is: of a MIG device its profile's, of shares as many as it has; None
    for a profile that is no offering.
    """
    if label := layouts.label_of_device(device):
        return parts.mig.get((flavor, label))
    return min(ONE, count * parts.shared.get(flavor, ONE))


def _fits(offerings: Iterable[Offering]) -> dict[str, Fits]:
    """Return by flavor what offered slices can take of a GPU with dynamic MIG beside what is in use."""
    parts: dict[str, dict[str, Fraction]] = defaultdict(dict)
    flavors: dict[str, Flavor] = {}
    for one in offerings:
        if one.flavor.partitionable:
            flavors[one.flavor.name] = one.flavor
            if not one.hidden and one.kind in {Kind.MIG, Kind.WHOLE}:
                parts[one.flavor.name][one.profile] = one.gpu_share
    geometries = {
        name: published.from_document(flavor.geometry) or geometry_of(flavor.product, flavor.memory_mib)
        for name, flavor in flavors.items()
    }
    return {name: _fit(geometry, parts[name]) for name, geometry in geometries.items() if geometry}


def _fit(geometry: Geometry, parts: Mapping[str, Fraction]) -> Callable[[tuple[str, ...]], Fraction]:
    """``parts`` are {profile, "" for a whole GPU: part of a GPU} of what is offered."""

    def fits(devices: tuple[str, ...]) -> Fraction:
        if not devices and "" in parts:
            return ONE
        placements = [layouts.known_placement(geometry, device) for device in devices]
        occupied = [place for place in placements if place is not None]
        return usable_part.of_gpu(geometry, occupied, parts) if len(occupied) == len(devices) else Fraction(0)

    return fits
