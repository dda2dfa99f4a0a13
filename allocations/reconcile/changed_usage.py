"""The controller of use: counts again what pods and claims use of the nodes whose use has changed.

It reads those nodes, their devices, pods and claims, and what the catalogue has of their flavors. So it costs the same
however many nodes there are; discovery (``inventory``) reads the whole fleet.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from allocations.domain.objects import Snapshot
from allocations.domain.observed_facts import pod_facts
from allocations.reconcile import mirror, node_usage, usage_changes
from allocations.reconcile.metering import job_ledger
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.reading import Columns, Rows, read_tables
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import node_supply, node_use, published
from quotas.catalog.models import Device, Flavor, Node, Pool
from quotas.catalog.node_supply import NodeSupply
from quotas.catalog.types import Discovered, FoundDevice, FoundFlavor, FoundNode, FoundPool, Identity, NodeUsage

RECHECK_AFTER = timedelta(seconds=60)
"""How often a node is counted while part of it is blocked: the portal's own pods change that without a wake-up."""
DEVICE = ("node__name", "name", "uuid", "flavor__name", "healthy", "attributes")


@dataclass(frozen=True)
class UsageState:
    """Nodes with what discovery found there, their pods and claims, the uids of those that are charged with their
    flavors, and the flavors of their allocations.
    """

    nodes: Sequence[Node]
    found: Discovered
    snapshot: Snapshot
    metered: dict[str, str]
    flavors: dict[str, str]


def reconcile_usage(cluster: str) -> datetime | None:
    """Count the use of the nodes whose use has changed, and write it to the catalogue; return when to count the next,
    or None.

    What is not charged of their queued Jobs is charged first: it is no foreign use.
    """
    with advisory_lock(targets.inventory(cluster)):
        changes = usage_changes.due(cluster)
        usages = _count(cluster, changes) if changes else {}
        node_use.record(cluster, usages)
        blocked = {node.name for node, usage in usages.items() if usage.blocked}
        next_at = usage_changes.counted(cluster, changes, blocked, RECHECK_AFTER)
    if next_at is not None and next_at <= clock.now():
        workqueue.enqueue(targets.usage(cluster))
    return next_at


def _count(cluster: str, names: Collection[str]) -> dict[Node, NodeUsage]:
    """Return the use of these nodes; without those that are gone, or that no discovery of this release has read."""
    state = read(cluster, names)
    metered = state.metered
    if job_ledger.repair(cluster, state.snapshot, metered):
        metered = read(cluster, names).metered
        jobs = {pod_facts(pod).get("job", "") for pod in state.snapshot.of_kind("Pod")} - {""}
        usage_changes.add(cluster, mirror.nodes_of_jobs(cluster, jobs) - set(names))
    per_gpu = {node.flavor.name: _supply(node).per_gpu for node in state.nodes if node.flavor}
    usages = node_usage.of_nodes(state.snapshot, state.found, state.flavors | metered, per_gpu)
    return {node: usages.get(node.name, node_use.NOTHING) for node in state.nodes}


def read(cluster: str, names: Collection[str]) -> UsageState:
    """Return the state of these nodes; one query."""
    rows = Node.objects.filter(cluster=cluster, name__in=names, present=True).exclude(supply={})
    nodes, pools, devices, metered, flavors, *objects = read_tables(
        Rows(rows.select_related("flavor")),
        Rows(Pool.objects.filter(flavor__in=rows.values("flavor")).select_related("flavor")),
        Columns(Device.objects.filter(node__in=rows.values("pk"), present=True), DEVICE),
        job_ledger.part_of_metered(cluster, names),
        mirror.part_of_flavors(cluster, names),
        *mirror.parts_of_use(cluster, names),
    )
    found = Discovered(
        flavors=tuple({node.flavor.name: _flavor(node.flavor) for node in nodes if node.flavor}.values()),
        pools=_pools(nodes, pools),
        nodes=tuple(map(_node, nodes)),
        devices=tuple(FoundDevice(*values) for values in devices),
    )
    snapshot = mirror.of_parts([values for part in objects for values in part])
    charged = job_ledger.metered_of(cluster, metered)
    return UsageState(nodes, found, snapshot, charged, mirror.flavors_of(flavors))


def _supply(node: Node) -> NodeSupply:
    return node_supply.from_document(node.supply)


def _flavor(row: Flavor) -> FoundFlavor:
    return FoundFlavor(
        name=row.name,
        identity=Identity(row.product, row.path, row.strategy),
        architecture=row.architecture,
        memory_mib=row.memory_mib,
        compute_capability=row.compute_capability,
        node_selector=row.node_selector,
        tolerations=tuple(row.tolerations),
        partitionable=row.partitionable,
        geometry=published.from_document(row.geometry),
        per_gpu=row.most_per_gpu,
    )


def _pools(nodes: Iterable[Node], rows: Iterable[Pool]) -> tuple[FoundPool, ...]:
    """Return the pools that the last discovery found."""
    parts: dict[str, Any] = {}
    for node in nodes:
        parts |= _supply(node).parts
    found = [row for row in rows if row.key in parts]
    return tuple(FoundPool(row.key, row.flavor.name, row.resources, 0, parts[row.key]) for row in found)


def _node(row: Node) -> FoundNode:
    supply = _supply(row)
    return FoundNode(
        name=row.name,
        flavor=row.flavor.name if row.flavor else "",
        ready=row.ready,
        tainted=row.tainted,
        problem=row.found_problem,
        capacity=row.capacity,
        units=supply.units,
        gives=supply.gives,
    )
