"""What of the fleet needs an operator: nodes and GPUs that cannot be used, and flavors that wait for a decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Value

from portal.core.reading import Columns, Rows, read_tables
from quotas.catalog.models import Device, Flavor, Node

UNUSABLE = Q(flavor=None) | Q(ready=False) | Q(tainted=False) | ~Q(problem="")
"""Of a node: it is not offered, takes no pods, or the catalogue says what is wrong with it."""


@dataclass(frozen=True)
class Faults:
    """The first of each, and how many there are; of a proposed flavor its id, name and number of nodes.

    A device is loaded with its node and that node's cluster.
    """

    nodes: Sequence[Node]
    node_count: int
    devices: Sequence[Device]
    device_count: int
    proposed: Sequence[tuple[int, str, int]]
    proposed_count: int


def unusable_nodes() -> QuerySet[Node]:
    """Return the present nodes of which something cannot be used, by name."""
    return Node.objects.filter(UNUSABLE, present=True).select_related("cluster", "flavor").order_by("name", "pk")


def unhealthy_devices() -> QuerySet[Device]:
    """Return the present devices that are not healthy, by node and name."""
    found = Device.objects.filter(healthy=False, present=True, node__present=True)
    return found.select_related("node__cluster", "flavor").order_by("node__name", "name", "pk")


def proposed_flavors() -> QuerySet[Flavor]:
    """Return the flavors that no operator has decided about, with ``node_count``, by name."""
    present = Count("nodes", filter=Q(nodes__present=True))
    return Flavor.objects.filter(accepted=False).select_related("cluster").annotate(node_count=present).order_by("name")


def current(size: int) -> Faults:
    """Return the first ``size`` of each; one query."""
    found = unusable_nodes(), unhealthy_devices(), proposed_flavors()
    nodes, node_count, devices, device_count, proposed, proposed_count = read_tables(
        Rows(found[0][:size]),
        _count(found[0]),
        Rows(found[1][:size]),
        _count(found[1]),
        Columns(found[2][:size], ("pk", "name", "node_count")),
        _count(Flavor.objects.filter(accepted=False)),
    )
    return Faults(
        nodes=nodes,
        node_count=_number(node_count),
        devices=devices,
        device_count=_number(device_count),
        proposed=[(pk, name, count) for pk, name, count in proposed],
        proposed_count=_number(proposed_count),
    )


def _count(rows: QuerySet[Any]) -> Columns:
    """Return what to read to count rows: there is one row with their number, or none if there are none."""
    return Columns(rows.order_by().values(all_=Value(1)).annotate(number=Count("pk")), ("number",))


def _number(counted: Sequence[Sequence[int]]) -> int:
    return counted[0][0] if counted else 0
