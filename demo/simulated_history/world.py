"""Reads what a history is drawn from: the fleet as it was when it was first recorded, its teams, quotas and prices."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Min

from demo.simulated_history.model import FlavorPrice, FleetUnit, ProjectMembers, Slice, World
from portal.tenants.models import Membership, Project
from quotas.catalog.mig_tables import geometry_of
from quotas.catalog.models import Flavor, Kind, Offering, Pool
from quotas.costs.models import Price
from quotas.limits.models import Limit
from quotas.metering.hours import DAY, day_of
from quotas.metering.models import CapacityInterval, ForeignUse, UsageInterval

RECORDED_TOGETHER = timedelta(minutes=10)
"""How long after the first unit others are recorded that were there then: each kind of object is listed by itself."""
UNUSUAL = ("+me", "+gfx", "7g.")
"""Parts of MIG profiles that nobody of a history asks for."""


class NothingRecorded(Exception):
    """The catalogue does not know the fleet yet, or offers nothing of it."""


def read(cluster: str, days: int) -> World:
    """Return the world of a history of so many whole days and what there is of the present one, until the ledger
    begins. Raises NothingRecorded.
    """
    starts = [
        model.objects.filter(cluster=cluster).aggregate(first=Min("start"))["first"]
        for model in (CapacityInterval, UsageInterval, ForeignUse)
    ]
    if starts[0] is None:
        raise NothingRecorded
    until = min(filter(None, starts)).replace(microsecond=0)
    flavors = {one.name: one for one in Flavor.objects.filter(cluster=cluster, accepted=True, hidden=False)}
    units = list(_units(cluster, until, flavors))
    if not units:
        raise NothingRecorded
    start = day_of(until) - days * DAY
    geometries = {name: geometry_of(one.product, one.memory_mib) for name, one in flavors.items()}
    return World(
        cluster=cluster,
        start=start,
        until=until,
        units=units,
        slices=list(_slices(units, flavors)),
        geometries={name: one for name, one in geometries.items() if one},
        divisible={name for name, one in flavors.items() if one.partitionable},
        projects=list(_projects(cluster)),
        quotas={(one.team.slug, one.pool.key): one.nominal for one in limits(cluster) if one.team and one.pool},
        pools=dict(Pool.objects.filter(flavor__cluster=cluster).values_list("key", "resources")),
        prices=_prices(flavors.values(), start, until),
    )


def limits(cluster: str) -> list[Limit]:
    """Return the quotas of teams and departments of the cluster's pools."""
    rows = Limit.objects.filter(pool__flavor__cluster=cluster, user=None, project=None)
    return list(rows.select_related("team", "department", "pool").order_by("pk"))


def _units(cluster: str, until: datetime, flavors: dict[str, Flavor]) -> Iterable[FleetUnit]:
    """Yield the units that were there when the ledger began, as if nothing had been wrong with them."""
    rows = CapacityInterval.objects.filter(cluster=cluster, inferred=False)
    first = rows.order_by("node", "kind", "name", "start").distinct("node", "kind", "name")
    for row in first:
        value = row.value
        if value and value.flavor in flavors and value.gpus and row.start <= until + RECORDED_TOGETHER:
            found = replace(row.found, available=row.count, state="")
            yield FleetUnit(row.unit, found, replace(value, offered=True), row.start)


def _slices(units: Iterable[FleetUnit], flavors: dict[str, Flavor]) -> Iterable[Slice]:
    """Yield what was offered of these units, and usual."""
    there = {
        (one.value.flavor, one.unit.name if one.unit.kind == CapacityInterval.Kind.RESOURCE else "") for one in units
    }
    offered = Offering.objects.filter(flavor__in=flavors.values(), hidden=False).exclude(kind=Kind.CLAIM)
    for one in offered.select_related("flavor", "pool").order_by("key"):
        is_usual = not any(part in one.profile for part in UNUSUAL)
        is_placed = bool(one.resource) or one.kind == Kind.WHOLE or (one.flavor.partitionable and bool(one.profile))
        if is_usual and is_placed and (one.flavor.name, one.resource) in there:
            yield Slice(
                one.key, one.flavor.name, one.kind, one.profile, one.resource, one.gpu_share, one.pool.key, one.requests
            )


def _projects(cluster: str) -> Iterable[ProjectMembers]:
    people: dict[int, list[str]] = defaultdict(list)
    for team, name in Membership.objects.order_by("team", "-role", "user__username").values_list(
        "team", "user__username"
    ):
        people[team].append(name)
    rows = Project.objects.filter(cluster=cluster, archived_at=None).select_related("team__department")
    for row in rows.order_by("slug"):
        yield ProjectMembers(row.team.department.slug, row.team.slug, row.slug, row.namespace, people[row.team_id])


def _prices(flavors: Iterable[Flavor], start: datetime, until: datetime) -> dict[str, FlavorPrice]:
    """Return by flavor the price that is in force from ``start`` to ``until``, of those that have one alone."""
    found = {}
    for flavor in flavors:
        before = Price.objects.filter(flavor=flavor, offering=None, valid_from__lte=until).order_by("valid_from").last()
        if before and before.valid_from <= start and before.per_gpu_hour:
            found[flavor.name] = FlavorPrice(before.per_gpu_hour, before.currency)
    return found
