"""Reads allocations with everything that an interface shows, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from uuid import UUID

from django.db.models import QuerySet

from allocations.capacity import geometry_lookup
from allocations.capacity.devices import parent_gpu
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain.allocation_spec import Sharing
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, Transition
from allocations.requests import advice, isolation
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from portal.tenants.models import User
from portal.workqueue import targets
from quotas.catalog.layouts import known_placement
from quotas.catalog.models import Device
from quotas.costs import selectors as costs
from quotas.metering.models import UsageInterval


def visible(user: User) -> QuerySet[Allocation]:
    """All allocations, ended ones too, that the person may see, newest first, with their relations."""
    projects = access.visible_projects(user)
    return (
        spec_of_row.rows().select_related("offering__pool").filter(project__in=projects).order_by("-created_at", "-id")
    )


def one(user: User, id_: UUID | str, action: str = "") -> Allocation:
    """The allocation, or NotVisible; Forbidden for who may not do `action` with it."""
    try:
        row = visible(user).filter(pk=UUID(str(id_))).first()
    except ValueError:
        row = None
    if row is None:
        raise NotVisible("The allocation", hint="GET /allocations lists yours.")
    if action:
        access.require(user, action, row.project.team, row.requested_by)
    return row


@dataclass(frozen=True)
class HeldDevice:
    """A device that is held; the last three tell a MIG device's card, profile and first memory slice with their number,
    empty where it is none or nobody says."""

    node: str
    device: str
    uuid: str
    parent_uuid: str = ""
    profile: str = ""
    placement: tuple[int, int] | None = None


@dataclass(frozen=True)
class Detail:
    """What goes beside a row: devices held now (or last), cost to date, objects on the cluster."""

    devices: tuple[HeldDevice, ...] = ()
    cost: Fraction = Fraction(0)
    per_hour: Fraction | None = None
    currency: str = "EUR"
    objects: tuple[tuple[str, str, str], ...] = ()
    """(kind, namespace, name) of its own objects."""


def details(rows: Iterable[Allocation]) -> Mapping[UUID, Detail]:
    """The details of many rows in a fixed number of queries."""
    rows = list(rows)
    ids = [row.pk for row in rows]
    devices = _devices(ids)
    target_of = {row.pk: targets.allocation(row.project.cluster_id, row.pk) for row in rows}
    objects: dict[str, list[tuple[str, str, str]]] = {target: [] for target in target_of.values()}
    known = AppliedObject.objects.filter(target__in=list(objects)).exclude(kind__contains="/").order_by("kind", "name")
    for found in known:
        objects[found.target].append((found.kind, found.namespace, found.name))
    spent = costs.cost_to_date(ids, clock.now())
    prices = costs.prices_per_hour({row.offering for row in rows}, clock.now())
    currency = costs.currency()
    return {
        row.pk: Detail(
            devices=tuple(devices.get(row.pk, ())),
            cost=spent.get(row.pk, Fraction(0)),
            per_hour=prices[row.offering.key] * _priced(row) if row.offering.key in prices else None,
            currency=currency,
            objects=tuple(objects[target_of[row.pk]]),
        )
        for row in rows
    }


def _priced(row: Allocation) -> Fraction:
    """Of how many slices it costs the price: of an own claim, the whole-GPU equivalents that it can take."""
    claim = CustomClaim.of_column(row.claim)
    return claim.built.gpus if claim and claim.built else Fraction(row.count)


def _devices(ids: list[UUID]) -> Mapping[UUID, list[HeldDevice]]:
    """What each holds now, from its open intervals, with what the catalogue knows of the cards; two queries."""
    held = list(UsageInterval.objects.filter(holder_id__in=ids, end=None).exclude(node="").order_by("slot"))
    names = {one.device for one in held}
    rows = Device.objects.filter(
        node__name__in={one.node for one in held}, name__in=names | {parent_gpu(name) for name in names}
    )
    known = {(row.node.cluster_id, row.node.name, row.name): row for row in rows.select_related("node", "flavor")}
    found: dict[UUID, list[HeldDevice]] = defaultdict(list)
    for one in held:
        there = (one.cluster_id, one.node)
        card = known.get((*there, parent_gpu(one.device)))
        found[one.holder_id].append(_device(one, known.get((*there, one.device), card)))
    return found


def _device(interval: UsageInterval, known: Device | None) -> HeldDevice:
    """``known``: the device itself, or the card it was cut from."""
    name = interval.device
    if known is None or parent_gpu(name) == name:
        return HeldDevice(interval.node, name, interval.device_uuid)
    geometry = geometry_lookup.of_flavor(known.flavor)
    place = known_placement(geometry, name) if geometry else None
    return HeldDevice(
        node=interval.node,
        device=name,
        uuid=interval.device_uuid,
        parent_uuid=str(known.attributes.get("parentUUID") or known.uuid),
        profile=place.profile if place else str(known.attributes.get("profile", "")),
        placement=(place.start, place.size) if place else None,
    )


def isolated(row: Allocation) -> Isolation:
    """What stands between the allocation and others on its cards, and between its own pods."""
    return isolation.requested(row.offering, Sharing.from_json(row.sharing), CustomClaim.of_column(row.claim))


def warnings(row: Allocation) -> list[advice.Warned]:
    """What was said when it was asked, in the words of ``services.preview``."""
    begin = row.starts_at or row.created_at
    hours = Fraction((row.ends_at - begin) // timedelta(microseconds=1), 3600 * 10**6)
    return advice.warnings(row.offering.key, *isolated(row), row.count, hours, row.purpose)


def reservation(row: Allocation) -> str:
    """What the hold guarantees: its devices, or a count on the flavor."""
    return "device" if CAPABILITIES[row.offering.flavor.path].names_devices else "count"


def timeline(row: Allocation) -> QuerySet[Transition]:
    """Every transition of the allocation, oldest first."""
    return row.transitions.order_by("id")


def manifests(row: Allocation) -> list[tuple[dict[str, object], bool]]:
    """The objects that the allocation is or will be on the cluster, each with whether it is applied now."""
    from allocations.domain.objects import Ref, Snapshot

    asked = spec_of_row.resolved_spec(row)
    target = targets.allocation(row.project.cluster_id, row.pk)
    applied = set(AppliedObject.objects.filter(target=target).values_list("kind", "namespace", "name"))
    wanted = [lease.build(asked), *registry.backend_of(asked).objects(asked, Snapshot())]
    return [(manifest, tuple(Ref.of_manifest(manifest)) in applied) for manifest in wanted]
