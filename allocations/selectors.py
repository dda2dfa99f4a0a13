"""Reading allocations: what a person may see, with all that an interface shows, in a fixed number of queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from django.db.models import QuerySet

from allocations.availability import Stock
from allocations.cluster.manifests import lease, paths
from allocations.models import Allocation, AppliedObject, Transition
from allocations.reconcile import request
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import selectors as costs
from quotas.metering.models import UsageInterval


def visible(user: User) -> QuerySet[Allocation]:
    """All allocations, ended ones too, that the person may see, newest first, with their relations."""
    projects = access.visible_projects(user)
    return request.rows().select_related("offering__pool").filter(project__in=projects).order_by("-created_at", "-id")


def one(user: User, id_: UUID | str) -> Allocation:
    """The allocation, or NotVisible."""
    try:
        row = visible(user).filter(pk=UUID(str(id_))).first()
    except ValueError:
        row = None
    if row is None:
        raise NotVisible("The allocation", hint="GET /allocations lists yours.")
    return row


@dataclass(frozen=True)
class HeldDevice:
    node: str
    device: str
    uuid: str


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
    devices: dict[UUID, list[HeldDevice]] = {id_: [] for id_ in ids}
    for interval in UsageInterval.objects.filter(allocation__in=ids, end=None).exclude(node="").order_by("slot"):
        device = interval.slot.rsplit("/", 1)[1]
        devices[interval.allocation].append(HeldDevice(interval.node, device, interval.device_uuid))
    objects: dict[str, list[tuple[str, str, str]]] = {f"allocation:{id_}": [] for id_ in ids}
    known = AppliedObject.objects.filter(target__in=list(objects)).exclude(kind__contains="/").order_by("kind", "name")
    for found in known:
        objects[found.target].append((found.kind, found.namespace, found.name))
    spent = costs.cost_to_date(ids, clock.now())
    prices = costs.prices_per_hour({row.offering for row in rows}, clock.now())
    currency = costs.currency()
    return {
        row.pk: Detail(
            devices=tuple(devices[row.pk]),
            cost=spent.get(row.pk, Fraction(0)),
            per_hour=prices[row.offering.key] * row.count if row.offering.key in prices else None,
            currency=currency,
            objects=tuple(objects[f"allocation:{row.pk}"]),
        )
        for row in rows
    }


def reservation(row: Allocation) -> str:
    """What the hold guarantees: the very devices by DRA, a count on the flavor by device plugin."""
    return "device" if row.offering.flavor.path == "dra" else "count"


def timeline(row: Allocation) -> QuerySet[Transition]:
    """Every transition of the allocation, oldest first."""
    return row.transitions.order_by("id")


def manifests(row: Allocation) -> list[tuple[dict[str, object], bool]]:
    """The objects that the allocation is or will be on the cluster, each with whether it is applied now."""
    from allocations.reconcile.facts import Ref, View

    asked = request.of(row)
    applied = set(AppliedObject.objects.filter(target=f"allocation:{row.pk}").values_list("kind", "namespace", "name"))
    wanted = [lease.build(asked), *paths.of(asked).objects(asked, View())]
    return [(manifest, tuple(Ref.of(manifest)) in applied) for manifest in wanted]


def stock(user: User) -> Stock:
    return Stock(access.visible_teams(user))
