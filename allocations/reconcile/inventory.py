"""reconcile_inventory: nodes, slices and foreign use, from the mirror down to the catalogue as plain facts."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from allocations import placing
from allocations.reconcile import job_ledger, mirror, pool_names
from allocations.reconcile.facts import Seen, View
from allocations.reconcile.wants import FINISHED
from portal.core import due
from portal.core.locks import advisory_lock
from portal.tenants.models import Project
from quotas.catalog import dra, services
from quotas.catalog import selectors as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.facts import ClassFact, DeviceFact, Discovered, NodeFact, SliceFact
from quotas.catalog.geometry import COMPUTE_SLICES
from quotas.catalog.models import Cluster
from quotas.catalog.node_shares import NodeShare

TARGET = "inventory"


def reconcile_inventory() -> datetime | None:
    """Bring the catalogue to what the mirror shows. New flavors or pools make the platform and the projects due."""
    with advisory_lock(TARGET):
        view = mirror.of_kinds("Node", "ResourceSlice", "DeviceClass", "ResourceClaim", "Pod")
        cluster, _ = Cluster.objects.get_or_create(slug=settings.CLUSTER_NAME, defaults={"name": settings.CLUSTER_NAME})
        known, taken = catalog.known_names(cluster)
        found = discover(
            [node_fact(s) for s in view.of("Node")],
            [slice_fact(s) for s in view.of("ResourceSlice")],
            known,
            taken,
            [class_fact(s) for s in view.of("DeviceClass")],
        )
        found = pool_names.kept(cluster, found)
        metered = job_ledger.metered()
        is_new = services.sync(cluster, found, foreign_use(view, found, metered))
        if job_ledger.repair(metered):  # pods on nodes whose flavor is known only now are no foreign use
            services.sync(cluster, found, foreign_use(view, found, job_ledger.metered()))
        if is_new:
            projects = Project.objects.filter(archived_at=None).values_list("slug", flat=True)
            due.mark("platform", *(f"project:{slug}" for slug in projects))
    return None


def node_fact(seen: Seen) -> NodeFact:
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


def slice_fact(seen: Seen) -> SliceFact:
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


def class_fact(seen: Seen) -> ClassFact:
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


def foreign_use(view: View, found: Discovered, metered: Collection[str]) -> dict[str, int]:
    """Units by pool that pods and claims use without an allocation: {pool key: units}.

    Pods count by their device plugin resources on the node they are bound to; claims of NVIDIA's driver by the devices
    they were given: a part that was cut on demand as its whole card, since nothing whole is left of that. Use of what
    is not offered now, on nodes that take no pods or on unhealthy devices, takes nothing from what is. ``metered``:
    uids of pods and claims whose GPUs the ledger has as held, of tenants' queued Jobs.
    """
    path_of = {flavor.name: flavor.identity.path for flavor in found.flavors}
    node_flavor = {node.name: node.flavor for node in found.nodes if node.flavor and node.ready}
    pools = {(pool.flavor, resource): pool.key for pool in found.pools for resource in pool.resources}
    use: Counter[str] = Counter()
    for pod in view.of("Pod", ""):
        if pod.facts["phase"] in FINISHED or not pod.facts["node"] or pod.uid in metered:
            continue
        flavor = node_flavor.get(pod.facts["node"], "")
        if path_of.get(flavor) != "device-plugin":  # where the driver gives them, the pod's claim says which
            continue
        for resource, amount in pod.facts["gpus"].items():
            if key := pools.get((flavor, resource)):
                use[key] += amount
    profiles = {(d.node, d.name): str(d.attributes["profile"]) for d in found.devices if "profile" in d.attributes}
    unhealthy = {(d.node, d.name) for d in found.devices if not d.healthy}
    cards: set[tuple[str, str]] = set()
    keys = {pool.key for pool in found.pools}
    for claim in view.of("ResourceClaim", ""):
        for device in claim.facts["devices"] if claim.uid not in metered else ():
            node, name = device["pool"], device["device"]
            if device["driver"] != dra.DRIVER or {(node, name), (node, placing.card_of(name))} & unhealthy:
                continue
            flavor = node_flavor.get(node, "")
            if (flavor, COMPUTE_SLICES) in pools:
                cards.add((node, placing.card_of(name)))
            elif key := pools.get((flavor, dra.GPU_SHARES)):
                use[key] += int(device.get("consumed", {}).get("shares", 1))
            elif (key := f"{flavor}/{dra.pool_of(profiles.get((node, name), ''))}") in keys:
                use[key] += 1
    for node, _card in cards:
        use[pools[node_flavor[node], COMPUTE_SLICES]] += 1
    return dict(use)
