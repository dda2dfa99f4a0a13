"""Reads what is shown beside allocations: devices, cost to date and objects; in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db.models.fields.json import KT

from allocations.capacity import geometry_lookup
from allocations.domain.custom_claim import CustomClaim
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core import clock
from portal.core.reading import Batch, Statement, digest_of
from portal.tenants.models import Project, User
from portal.workqueue import targets
from quotas.catalog.layouts import known_placement, parent_gpu
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.models import Device, Offering
from quotas.costs import rates
from quotas.costs import selectors as costs
from quotas.costs.rates import PriceList
from quotas.costs.selectors import NO_CHARGE, Charge
from quotas.metering import held_intervals
from quotas.metering.held_intervals import HeldInterval

OBJECTS = f"""
    SELECT target, kind, namespace, name FROM allocations_appliedobject
    WHERE target IN (
        SELECT project.cluster_id || '{targets.allocation("", "")}' || row.id
        FROM allocations_allocation AS row JOIN tenants_project AS project ON project.id = row.project_id
        WHERE row.id = ANY(%s)
    ) AND position('/' IN kind) = 0 ORDER BY kind, name
"""  # noqa: S608 (built from a constant)


@dataclass(frozen=True)
class HeldDevice:
    """A device that is held.

    The last three are of a MIG device: the UUID of its GPU, its profile, and its placement (the first memory slice and
    the number of slices). They are empty for other devices, or if unknown.
    """

    node: str
    device: str
    uuid: str
    parent_uuid: str = ""
    profile: str = ""
    placement: tuple[int, int] | None = None


@dataclass(frozen=True)
class Detail:
    """What is shown beside a row: the devices held now, the charge to date, and the objects in the cluster.

    ``past_devices`` are those of the last hold of an allocation that has ended. ``per_hour`` is None if no price is in
    force.
    """

    devices: tuple[HeldDevice, ...] = ()
    past_devices: tuple[HeldDevice, ...] = ()
    charge: Charge = NO_CHARGE
    per_hour: Fraction | None = None
    currency: str = "EUR"
    objects: tuple[tuple[str, str, str], ...] = ()
    """Kind, namespace and name of the allocation's own objects."""


@dataclass(frozen=True)
class Details:
    """What was read beside some rows. ``version`` changes when anything of it or of the rows' relations does."""

    rows: Sequence[Allocation]
    intervals: Sequence[HeldInterval]
    objects: Mapping[str, Sequence[tuple[str, str, str]]]
    prices: PriceList
    version: str

    def by_id(self) -> dict[UUID, Detail]:
        """Return the details of each row by its id. The charge of what is held is as of the whole minute, so that it is
        the same for who asks twice within one. At most one query, for MIG devices.
        """
        now, until = clock.now(), clock.this_minute()
        held = [one for one in self.intervals if one.end is None]
        last = _of_last_hold([row for row in self.rows if row.ended_at is not None], self.intervals)
        devices = _devices(self.rows, [*held, *last])
        ended = [one if one.end else one._replace(end=max(one.start, until)) for one in self.intervals]
        charges = costs.charges(ended, self.prices, now)
        per_hour = costs.slice_prices({row.offering for row in self.rows}, self.prices, now)
        return {
            row.pk: Detail(
                devices=() if row.ended_at else tuple(devices.get(row.pk, ())),
                past_devices=tuple(devices.get(row.pk, ())) if row.ended_at else (),
                charge=charges.get(row.pk, NO_CHARGE),
                per_hour=per_hour[row.offering.key] * _priced_quantity(row) if row.offering.key in per_hour else None,
                currency=self.prices.currency,
                objects=tuple(self.objects.get(targets.allocation(row.project.cluster_id, row.pk), ())),
            )
            for row in self.rows
        }


def by_id(rows: Iterable[Allocation]) -> dict[UUID, Detail]:
    """Return the details of some rows by id, and set the rows' relations; one query, or two with MIG devices."""
    return read(rows).by_id()


def read(rows: Iterable[Allocation], batch: Batch | None = None) -> Details:
    """Read what is shown beside some rows, and set the rows' relations; one query, with the rest of the ``batch``.

    Of rows that were just requested there is nothing in the ledger and in the cluster yet.
    """
    rows, batch = list(rows), batch or Batch()
    started = [row.pk for row in rows if row.number is not None or row.held_at is not None]
    bare = [row for row in rows if not Allocation.project.is_cached(row)]
    parts = [batch.add(part) for part in spec_of_row.relations(bare)] if bare else []
    intervals, objects, prices = (
        batch.add(part)
        for part in (
            held_intervals.statement(started),
            Statement(OBJECTS, (started,), ("target", "kind", "namespace", "name")),
            rates.statement(),
        )
    )
    relations = [part() for part in parts]
    if bare:
        spec_of_row.set_relations(bare, *relations)
    by_target: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for one in objects():
        by_target[one.target].append((one.kind, one.namespace, one.name))
    return Details(
        rows=rows,
        intervals=[held_intervals.interval(one) for one in intervals()],
        objects=by_target,
        prices=rates.price_list(prices()),
        version=digest_of(intervals(), objects(), prices(), _columns(*relations) if bare else []),
    )


def _columns(projects: Iterable[Project], offerings: Iterable[Offering], people: Iterable[User]) -> list[Any]:
    """Return the columns of rows that were just read and of their relations, but of people the names alone."""
    read = [*projects, *(one.team for one in projects), *offerings, *(one.flavor for one in offerings)]
    columns = [{name: value for name, value in vars(one).items() if name != "_state"} for one in read]
    return [*columns, *(one.username for one in people)]


def _priced_quantity(row: Allocation) -> Fraction:
    """Return the quantity that the price is for: slices; for a custom claim, GPU equivalents."""
    claim = CustomClaim.of_column(row.claim)
    return claim.built.gpus if claim and claim.built else Fraction(row.count)


def _of_last_hold(rows: Iterable[Allocation], intervals: Iterable[HeldInterval]) -> list[HeldInterval]:
    """Return the intervals of what each of these rows, which have ended, held at last; each device once."""
    since = {row.pk: row.held_since or row.held_at for row in rows}
    found: dict[tuple[UUID, str], HeldInterval] = {}
    for one in intervals:
        begin = since.get(one.holder_id)
        if begin is not None and one.end is not None and one.end > begin:
            found[one.holder_id, one.slot] = one
    return list(found.values())


def _devices(rows: Iterable[Allocation], intervals: Iterable[HeldInterval]) -> Mapping[UUID, list[HeldDevice]]:
    """Return the devices of each allocation in these intervals; one query for the GPUs of MIG devices."""
    held = [one for one in intervals if one.node]
    parts = {one.device for one in held if parent_gpu(one.device) != one.device}
    flavor_of = {row.pk: row.offering.flavor for row in rows}
    found: dict[UUID, list[HeldDevice]] = defaultdict(list)
    if not parts:
        for one in held:
            found[one.holder_id].append(HeldDevice(one.node, one.device, one.device_uuid))
        return found
    names = parts | {parent_gpu(name) for name in parts}
    attributes = {"parent": KT("attributes__parentUUID"), "profile": KT("attributes__profile")}
    published = Device.objects.filter(node__name__in={one.node for one in held}, name__in=names).annotate(**attributes)
    columns = ("node__cluster", "node__name", "name", "uuid", *attributes)
    rows_of_devices = published.order_by().values_list(*columns, named=True)
    catalogue = {(one.node__cluster, one.node__name, one.name): one for one in rows_of_devices}
    geometries = {flavor: geometry_lookup.of_flavor(flavor) for flavor in set(flavor_of.values())}
    for one in held:
        gpu = catalogue.get((one.cluster, one.node, parent_gpu(one.device)))
        device = catalogue.get((one.cluster, one.node, one.device), gpu)
        found[one.holder_id].append(_held_device(one, device, geometries[flavor_of[one.holder_id]]))
    return found


def _held_device(interval: HeldInterval, device: Any, geometry: Geometry | None) -> HeldDevice:
    """Return the device of an interval; ``device`` is its own in the catalogue, or that of its GPU, or None."""
    name = interval.device
    if device is None or parent_gpu(name) == name:
        return HeldDevice(interval.node, name, interval.device_uuid)
    place = known_placement(geometry, name) if geometry else None
    return HeldDevice(
        node=interval.node,
        device=name,
        uuid=interval.device_uuid,
        parent_uuid=device.parent or device.uuid,
        profile=place.profile if place else device.profile or "",
        placement=(place.start, place.size) if place else None,
    )
