"""The controller of the catalog: reads nodes, slices and foreign use from the mirror, and writes the catalog."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from allocations.domain.objects import ObservedObject, Snapshot
from allocations.reconcile import mirror, node_usage, pool_names
from allocations.reconcile.metering import job_ledger
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import selectors as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.sync import sync
from quotas.catalog.types import ClassFact, DeviceFact, Discovered, NodeFact, SliceFact

RECHECK_AFTER = timedelta(seconds=60)
"""How often it is reconciled while part of a node is blocked: the portal's own pods come and go without a wake-up."""


def reconcile_inventory(cluster: str) -> datetime | None:
    """Bring the catalogue to what the mirror shows. New flavors or pools make the platform and the projects due.

    Returns when to look again, while something of a node is blocked.
    """
    with advisory_lock(targets.inventory(cluster)):
        snapshot = mirror.of_nodes(cluster)
        known, taken = catalog.known_names(cluster)
        found = discover(
            [node_fact(s) for s in snapshot.of_kind("Node")],
            [slice_fact(s) for s in snapshot.of_kind("ResourceSlice")],
            known,
            taken,
            [class_fact(s) for s in snapshot.of_kind("DeviceClass")],
        )
        found = pool_names.with_kept_names(cluster, found)
        per_card = catalog.per_card(cluster, found)
        metered = job_ledger.metered(cluster)
        is_new, is_blocked = _sync(cluster, snapshot, found, metered, per_card)
        if job_ledger.repair(cluster, metered):  # pods on nodes whose flavor is known only now are no foreign use
            _, is_blocked = _sync(cluster, snapshot, found, job_ledger.metered(cluster), per_card)
        if is_new:
            projects = Project.objects.filter(cluster=cluster, archived_at=None).values_list("slug", flat=True)
            workqueue.enqueue(targets.platform(cluster), *(targets.project(cluster, slug) for slug in projects))
    return clock.now() + RECHECK_AFTER if is_blocked else None


def _sync(
    cluster: str, snapshot: Snapshot, found: Discovered, metered: Collection[str], per_card: Mapping[str, NodeShare]
) -> tuple[bool, bool]:
    """Write what was found and what is used of it; whether flavors or pools changed, and whether a node is blocked."""
    rooms = node_usage.rooms(snapshot, found, metered, per_card)
    foreign, blocked = node_usage.foreign_use(snapshot, found, metered), node_usage.blocked_units(rooms.values())
    is_new = sync(cluster, node_usage.with_rooms(found, rooms), foreign, blocked)
    return is_new, any(room.blocked for room in rooms.values())


def node_fact(seen: ObservedObject) -> NodeFact:
    facts = seen.facts
    return NodeFact(
        name=seen.ref.name,
        labels=facts["labels"],
        allocatable=facts["allocatable"],
        capacity=facts["capacity"],
        taints=tuple((key, value, effect) for key, value, effect in facts["taints"]),
        ready=facts["ready"],
        unschedulable=facts["unschedulable"],
        gives=NodeShare(**facts.get("gives", {})),
    )


def slice_fact(seen: ObservedObject) -> SliceFact:
    facts = seen.facts
    return SliceFact(
        name=seen.ref.name,
        driver=facts["driver"],
        node=facts["node"],
        pool=facts["pool"],
        generation=facts["generation"],
        slice_count=facts["slice_count"],
        devices=tuple(map(_device, facts["devices"])),
        shared_counters={c["name"]: c["counters"] for c in facts["shared_counters"]},
    )


def class_fact(seen: ObservedObject) -> ClassFact:
    return ClassFact(seen.ref.name, seen.facts["extended_resource"], tuple(seen.facts["selectors"]))


def _device(device: Mapping[str, Any]) -> DeviceFact:
    return DeviceFact(
        name=device["name"],
        attributes=device["attributes"],
        capacity=device["capacity"],
        counters={c["set"]: c["counters"] for c in device["counters"]},
        taints=tuple((key, value, effect) for key, value, effect in device["taints"]),
        shareable=device["shareable"],
    )
