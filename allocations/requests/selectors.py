"""Reads allocations with all that pages and the REST API show, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from django.db.models import QuerySet

from allocations.capacity import geometry_lookup
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain import held_time
from allocations.domain.allocation_spec import Sharing
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation
from allocations.domain.objects import Ref, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, Transition
from allocations.requests import advice, isolation
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from portal.tenants.models import User
from portal.workqueue import targets
from quotas.catalog.layouts import known_placement, parent_gpu
from quotas.catalog.models import Device
from quotas.costs import selectors as costs
from quotas.costs.selectors import NO_CHARGE, Charge
from quotas.metering.models import UsageInterval


def visible(user: User) -> QuerySet[Allocation]:
    """Return all allocations that the person may see, including ended ones, newest first, with their relations."""
    projects = access.visible_projects(user)
    return (
        spec_of_row.rows().select_related("offering__pool").filter(project__in=projects).order_by("-created_at", "-id")
    )


def get(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation. Raises NotVisible."""
    try:
        row = visible(user).filter(pk=UUID(str(id_))).first()
    except ValueError:
        row = None
    if row is None:
        raise NotVisible("The allocation", hint="GET /allocations lists yours.")
    return row


def releasable(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation, for who may release it. Raises NotVisible, Forbidden."""
    row = get(user, id_)
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    return row


def extendable(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation, for who may extend it. Raises NotVisible, Forbidden."""
    row = get(user, id_)
    access.require(user, "allocation.extend", row.project.team, row.requested_by)
    return row


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

    ``per_hour`` is None if no price is in force.
    """

    devices: tuple[HeldDevice, ...] = ()
    charge: Charge = NO_CHARGE
    per_hour: Fraction | None = None
    currency: str = "EUR"
    objects: tuple[tuple[str, str, str], ...] = ()
    """Kind, namespace and name of the allocation's own objects."""


def details(rows: Iterable[Allocation], *, are_new: bool = False) -> Mapping[UUID, Detail]:
    """Return the details of some rows by id, in a fixed number of queries.

    Of those that ``are_new``, just requested, there is nothing in the ledger and in the cluster yet.
    """
    rows = list(rows)
    started = [] if are_new else [row for row in rows if row.number is not None or row.held_at is not None]
    ids = [row.pk for row in started]
    intervals = list(UsageInterval.objects.filter(holder_id__in=ids).order_by("slot")) if started else []
    devices = _devices(intervals)
    objects = _objects(started)
    charges = costs.charges(intervals, clock.now())
    prices = costs.prices_per_hour({row.offering for row in rows}, clock.now())
    currency = costs.currency()
    return {
        row.pk: Detail(
            devices=tuple(devices.get(row.pk, ())),
            charge=charges.get(row.pk, NO_CHARGE),
            per_hour=prices[row.offering.key] * _priced_quantity(row) if row.offering.key in prices else None,
            currency=currency,
            objects=tuple(objects.get(targets.allocation(row.project.cluster_id, row.pk), ())),
        )
        for row in rows
    }


def _objects(rows: Iterable[Allocation]) -> Mapping[str, list[tuple[str, str, str]]]:
    """Return the applied objects of allocations by target; one query, none without allocations."""
    target_of = [targets.allocation(row.project.cluster_id, row.pk) for row in rows]
    objects: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    if target_of:
        applied = AppliedObject.objects.filter(target__in=target_of).exclude(kind__contains="/")
        for found in applied.order_by("kind", "name"):
            objects[found.target].append((found.kind, found.namespace, found.name))
    return objects


def _priced_quantity(row: Allocation) -> Fraction:
    """Return the quantity that the price is for: slices; for a custom claim, GPU equivalents."""
    claim = CustomClaim.of_column(row.claim)
    return claim.built.gpus if claim and claim.built else Fraction(row.count)


def _devices(intervals: Iterable[UsageInterval]) -> Mapping[UUID, list[HeldDevice]]:
    """Return the devices that each allocation holds now, from its intervals and the catalogue; one query."""
    held = [one for one in intervals if one.end is None and one.node]
    names = {one.device for one in held}
    rows = Device.objects.filter(
        node__name__in={one.node for one in held}, name__in=names | {parent_gpu(name) for name in names}
    )
    catalogue = {(row.node.cluster_id, row.node.name, row.name): row for row in rows.select_related("node", "flavor")}
    found: dict[UUID, list[HeldDevice]] = defaultdict(list)
    for one in held:
        node = (one.cluster_id, one.node)
        gpu = catalogue.get((*node, parent_gpu(one.device)))
        found[one.holder_id].append(_held_device(one, catalogue.get((*node, one.device), gpu)))
    return found


def _held_device(interval: UsageInterval, device: Device | None) -> HeldDevice:
    """Return the device of an interval; ``device`` is its row in the catalogue, or that of its GPU."""
    name = interval.device
    if device is None or parent_gpu(name) == name:
        return HeldDevice(interval.node, name, interval.device_uuid)
    geometry = geometry_lookup.of_flavor(device.flavor)
    place = known_placement(geometry, name) if geometry else None
    return HeldDevice(
        node=interval.node,
        device=name,
        uuid=interval.device_uuid,
        parent_uuid=str(device.attributes.get("parentUUID") or device.uuid),
        profile=place.profile if place else str(device.attributes.get("profile", "")),
        placement=(place.start, place.size) if place else None,
    )


def isolation_of(row: Allocation) -> Isolation:
    """Return the isolation of the allocation from others on its GPUs, and of its own pods."""
    return isolation.request_isolation(row.offering, Sharing.from_json(row.sharing), CustomClaim.of_column(row.claim))


def warnings(row: Allocation, found: Isolation) -> list[advice.ChoiceWarning]:
    """Return the warnings that the preview of the request had; ``found`` is the row's isolation."""
    hours = held_time.hours(spec_of_row.time(row).span)
    return advice.warnings(row.offering.key, *found, row.count, hours, row.purpose)


def reservation(row: Allocation) -> str:
    """Return what the hold reserves: its devices (``device``), or a count on the flavor (``count``)."""
    return "device" if CAPABILITIES[row.offering.flavor.path].names_devices else "count"


def timeline(row: Allocation) -> QuerySet[Transition]:
    """Return all transitions of the allocation, oldest first."""
    return row.transitions.order_by("id")


def manifests(row: Allocation) -> list[tuple[dict[str, object], bool]]:
    """Return the objects that the allocation has or will have in the cluster, each with whether it is applied."""
    spec = spec_of_row.resolved_spec(row)
    target = targets.allocation(row.project.cluster_id, row.pk)
    applied = set(AppliedObject.objects.filter(target=target).values_list("kind", "namespace", "name"))
    desired = [lease.build(spec), *registry.backend_of(spec).objects(spec, Snapshot())]
    return [(manifest, tuple(Ref.of_manifest(manifest)) in applied) for manifest in desired]
