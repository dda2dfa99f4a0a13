"""The catalogue controller: reads nodes, ResourceSlices and foreign use from the mirror, and writes the catalogue.

It reads the whole fleet, so it runs after a change of the fleet. A change of use is counted by ``changed_usage``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from allocations.domain.objects import ObservedObject, Snapshot
from allocations.domain.observed_facts import PublishedDevice, device_class_facts, node_facts, slice_facts
from allocations.lifecycle import unpublished
from allocations.reconcile import mirror, node_usage, pool_names, usage_changes
from allocations.reconcile.changed_usage import RECHECK_AFTER
from allocations.reconcile.metering import capacity_ledger, job_ledger
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.reading import read_tables
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import selectors as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.sync import sync
from quotas.catalog.types import ClassFact, DeviceFact, Discovered, NodeFact, SliceFact
from quotas.metering.capacity import open_units

RESYNC_AFTER = timedelta(minutes=10)
"""How often it is reconciled if nothing changes: should a count of use ever be wrong, it is right again then."""


def reconcile_inventory(cluster: str) -> datetime:
    """Update the catalogue from the mirror; return when to reconcile again if nothing changes.

    New flavors or pools enqueue the platform and the projects, and allocations are enqueued that hold what is not
    published any more. A node of which a part is blocked is counted again soon.
    """
    with advisory_lock(targets.inventory(cluster)):
        units = open_units(cluster)
        snapshot = mirror.of_nodes(cluster)
        names, used_names = catalog.known_names(cluster)
        found = discover(
            [node_fact(s) for s in snapshot.of_kind("Node")],
            [slice_fact(s) for s in snapshot.of_kind("ResourceSlice")],
            names,
            used_names,
            [class_fact(s) for s in snapshot.of_kind("DeviceClass")],
            catalog.known_shares(cluster),
            catalog.gpu_memory(cluster),
        )
        found = pool_names.with_kept_names(cluster, found)
        per_gpu = catalog.per_gpu(cluster, found)
        metered = job_ledger.metered(cluster)
        [rows] = read_tables(mirror.part_of_flavors(cluster))
        flavors = mirror.flavors_of(rows)
        is_new, blocked = _sync(cluster, snapshot, found, flavors | metered, per_gpu)
        if job_ledger.repair_all(cluster, metered):  # what the ledger has charged now is no foreign use
            _, blocked = _sync(cluster, snapshot, found, flavors | job_ledger.metered(cluster), per_gpu)
        if is_new:
            projects = Project.objects.filter(cluster=cluster, archived_at=None).values_list("slug", flat=True)
            workqueue.enqueue(targets.platform(cluster), *(targets.project(cluster, slug) for slug in projects))
        capacity_ledger.add_values(cluster, units, found)
        workqueue.enqueue(*(targets.allocation(cluster, id_) for id_ in unpublished.changed(cluster)))
        if blocked:
            usage_changes.add(cluster, blocked, RECHECK_AFTER)
            workqueue.enqueue(targets.usage(cluster), at=clock.now() + RECHECK_AFTER)
    return clock.now() + RESYNC_AFTER


def _sync(
    cluster: str,
    snapshot: Snapshot,
    found: Discovered,
    flavors: Mapping[str, str],
    per_gpu: Mapping[str, NodeShare],
) -> tuple[bool, set[str]]:
    """Write the discovered inventory and its use; return whether flavors or pools changed, and the nodes of which a
    part is blocked.
    """
    usages = node_usage.of_nodes(snapshot, found, flavors, per_gpu)
    foreign = node_usage.totals(usage.foreign for usage in usages.values())
    blocked = node_usage.totals(usage.blocked_units for usage in usages.values())
    is_new = sync(cluster, found, foreign, blocked, usages, per_gpu)
    return is_new, {node for node, usage in usages.items() if usage.blocked}


def node_fact(observed: ObservedObject) -> NodeFact:
    facts = node_facts(observed)
    return NodeFact(
        name=observed.ref.name,
        labels=facts["labels"],
        allocatable=facts["allocatable"],
        capacity=facts["capacity"],
        taints=tuple((key, value, effect) for key, value, effect in facts["taints"]),
        ready=facts["ready"],
        unschedulable=facts["unschedulable"],
        gives=NodeShare(**facts["gives"]) if "gives" in facts else NodeShare(),
    )


def slice_fact(observed: ObservedObject) -> SliceFact:
    facts = slice_facts(observed)
    return SliceFact(
        name=observed.ref.name,
        driver=facts["driver"],
        node=facts["node"],
        pool=facts["pool"],
        generation=facts["generation"],
        slice_count=facts["slice_count"],
        devices=tuple(map(_device, facts["devices"])),
        shared_counters={c["name"]: c["counters"] for c in facts["shared_counters"]},
    )


def class_fact(observed: ObservedObject) -> ClassFact:
    facts = device_class_facts(observed)
    return ClassFact(observed.ref.name, facts["extended_resource"], tuple(facts["selectors"]))


def _device(device: PublishedDevice) -> DeviceFact:
    return DeviceFact(
        name=device["name"],
        attributes=device["attributes"],
        capacity=device["capacity"],
        counters={c["set"]: c["counters"] for c in device["counters"]},
        taints=tuple((key, value, effect) for key, value, effect in device["taints"]),
        shareable=device["shareable"],
    )
