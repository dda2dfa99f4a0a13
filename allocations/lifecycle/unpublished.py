"""Reads which held devices no node publishes any more: a GPU that fell off its bus, or whose node is gone.

A claim stays allocated then, and a count stays in its quota, so what is held is still charged; but no pod can start on
it. What was never recorded as capacity is not known to be gone.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Case, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value, When

from allocations.domain.backend_capabilities import COUNTING_PATHS
from allocations.models import Allocation
from portal.core.reading import Columns
from quotas.catalog.models import Node
from quotas.metering.models import CapacityInterval, UsageInterval, device_of_slot
from quotas.metering.units import GPU, RESOURCE

MISSING = "missing"
"""``CapacityInterval.state`` of a unit that its node does not publish any more."""
REASON = "device_not_published"


def parts(allocation: UUID | str) -> tuple[Columns, Columns]:
    """Return what to read of an allocation for ``words`` (``portal.core.reading``)."""
    counted = _counted(Allocation.objects.filter(pk=allocation).order_by())
    devices = _devices(UsageInterval.objects.filter(holder_id=allocation)).order_by("slot")
    return Columns(devices, ("slot", "node")), Columns(counted, ("offering__resource",))


def words(devices: Iterable[Any], resources: Iterable[Any]) -> str:
    """Return what of an allocation is not published, such as ``gpu-0 of node h100-0``; "" if all is."""
    named = [f"{device_of_slot(one.slot, one.node)} of node {one.node}" for one in devices]
    return ", ".join([*named, *(one.offering__resource for one in resources)])


def changed(cluster: str) -> set[UUID]:
    """Return the allocations of a cluster of which something is not published and that do not say so, or the reverse;
    three queries.
    """
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None).order_by()
    holders = _devices(UsageInterval.objects.filter(cluster=cluster)).order_by().values("holder_id")
    named = live.filter(pk__in=holders).values_list("pk", flat=True)
    counted = _counted(live.exclude(held_since=None)).values_list("pk", flat=True)
    told = live.filter(reason=REASON).values_list("pk", flat=True)
    return {*named, *counted} ^ {*told}


def _devices(intervals: QuerySet[UsageInterval]) -> QuerySet[UsageInterval]:
    """Return the open intervals on named devices whose GPU is not published any more."""
    device = Func(F("slot"), Value("/"), Value(3), function="split_part", output_field=TextField())
    gpu = Func(device, Value("-mig-"), Value(1), function="split_part", output_field=TextField())
    capacity = CapacityInterval.objects.filter(
        cluster=OuterRef("cluster"), node=OuterRef("node"), kind=GPU, name=OuterRef("gpu")
    )
    named = intervals.filter(end=None).exclude(node="").annotate(gpu=gpu)
    return named.filter(Exists(capacity), ~Exists(capacity.filter(end=None).exclude(state=MISSING)))


def _counted(allocations: QuerySet[Allocation]) -> QuerySet[Allocation]:
    """Return those whose slices are a count of a resource that no node of their flavor publishes any more."""
    pool = Func(OuterRef("offering__pool__key"), Value("/"), Value(2), function="split_part", output_field=TextField())
    has_units = Func(F("capacity"), pool, function="jsonb_exists", output_field=BooleanField())
    nodes = Node.objects.filter(flavor=OuterRef("offering__flavor"), present=True).annotate(has_units=has_units)
    before = CapacityInterval.objects.filter(
        cluster=OuterRef("project__cluster"), kind=RESOURCE, name=OuterRef("offering__resource")
    )
    is_gone = Case(
        When(Exists(nodes.filter(has_units=True)), then=Value(False)),
        default=Exists(before.filter(flavor=OuterRef("offering__flavor__name"))),
        output_field=BooleanField(),
    )
    return (
        allocations.filter(Q(offering__flavor__path__in=COUNTING_PATHS)).annotate(is_gone=is_gone).filter(is_gone=True)
    )
