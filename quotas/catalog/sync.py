"""Writes to the catalog what discovery found on a cluster."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import models, transaction

from portal.core.locks import advisory_lock
from quotas.catalog import node_supply, node_use, published, versions
from quotas.catalog.models import Device, Flavor, Node, Offering, Pool, PoolUse
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.storable import MAX_NUMBER
from quotas.catalog.types import (
    Discovered,
    FoundDevice,
    FoundFlavor,
    FoundOffering,
    FoundPool,
    Identity,
    NodeUsage,
)

Row = TypeVar("Row", bound=models.Model)


def sync(
    cluster: str,
    discovered: Discovered,
    foreign: Mapping[str, int],
    blocked: Mapping[str, int] = MappingProxyType({}),
    usages: Mapping[str, NodeUsage] = MappingProxyType({}),
    per_gpu: Mapping[str, NodeShare] = MappingProxyType({}),
) -> bool:
    """Write what was discovered on a cluster; return True if a flavor or pool is new or differs.

    `foreign` is capacity used by pods and claims without an allocation: {key of a pool or of one of its offerings:
    units}, where a whole GPU or one of the device plugin's resource is a unit. `blocked` are free units by pool that
    cannot have their share of their node (`blocked_capacity`). `usages` are each node's part of both, `per_gpu` is what
    goes with a GPU of each flavor.

    1. Rows that differ are written, in a fixed number of queries; a second run writes nothing.
    2. What is no longer found stays, since limits, prices and allocations refer to it: pools with total 0, nodes and
       devices marked absent.
    """
    with transaction.atomic(), advisory_lock("catalog", cluster):
        flavors, flavors_changed = _sync_flavors(cluster, discovered.flavors)
        pools, pools_changed = _sync_pools(cluster, discovered.pools, flavors)
        _sync_offerings(cluster, discovered.offerings, flavors, pools)
        versions.record(flavors.values())
        _sync_use(discovered, pools, foreign, blocked)
        nodes = _sync_nodes(cluster, discovered, flavors, usages, per_gpu)
        _sync_devices(cluster, discovered.devices, nodes, flavors)
    return flavors_changed or pools_changed


def _sync_flavors(cluster: str, found: Iterable[FoundFlavor]) -> tuple[dict[str, Flavor], bool]:
    """Write the flavors of the cluster; return them by name, and whether any was written."""
    rows = {Identity(row.product, row.path, row.strategy): row for row in Flavor.objects.filter(cluster=cluster)}
    new, changed = [], []
    for flavor in found:
        values = {
            "architecture": flavor.architecture,
            "memory_mib": flavor.memory_mib,
            "compute_capability": flavor.compute_capability,
            "node_selector": dict(flavor.node_selector),
            "tolerations": [dict(toleration) for toleration in flavor.tolerations],
            "partitionable": flavor.partitionable,
            "geometry": published.document(flavor.geometry),
            "node_cpu_millicores": flavor.per_gpu.cpu_millicores,
            "node_memory_mib": flavor.per_gpu.memory_mib,
            "node_pods": flavor.per_gpu.pods,
        }
        row = rows.get(flavor.identity)
        if row is None:
            key = flavor.identity
            row = Flavor(
                cluster_id=cluster,
                name=flavor.name,
                product=key.product,
                path=key.path,
                strategy=key.strategy,
                **values,
            )
            new.append(row)
            rows[key] = row
        elif _assign(row, values):
            changed.append(row)
    Flavor.objects.bulk_create(new)
    if changed:
        fields = [
            "architecture",
            "memory_mib",
            "compute_capability",
            "node_selector",
            "tolerations",
            "partitionable",
            "geometry",
            "node_cpu_millicores",
            "node_memory_mib",
            "node_pods",
        ]
        Flavor.objects.bulk_update(changed, fields)
    return {row.name: row for row in Flavor.objects.filter(cluster=cluster)}, bool(new or changed)


def _sync_pools(
    cluster: str, found: Iterable[FoundPool], flavors: Mapping[str, Flavor]
) -> tuple[dict[str, Pool], bool]:
    """Write the pools of the cluster; return them by key, and whether any was written."""
    desired = {pool.key: {"flavor_id": flavors[pool.flavor].pk, "resources": dict(pool.resources)} for pool in found}
    changed = _upsert(Pool, Pool.objects.filter(flavor__cluster=cluster), "key", desired)
    return {row.key: row for row in Pool.objects.filter(flavor__cluster=cluster)}, changed


def _sync_offerings(
    cluster: str, found: Iterable[FoundOffering], flavors: Mapping[str, Flavor], pools: Mapping[str, Pool]
) -> None:
    desired = {
        offering.key: {
            "flavor_id": flavors[offering.flavor].pk,
            "pool_id": pools[offering.pool].pk,
            "kind": offering.kind,
            "profile": offering.profile,
            "isolation": offering.isolation,
            "requests": dict(offering.requests),
            "resource": offering.resource,
            "device_class": offering.device_class,
            "selectors": list(offering.selectors),
            "gpu_share_numerator": offering.gpu_share.numerator,
            "gpu_share_denominator": offering.gpu_share.denominator,
            "per_node": offering.per_node,
            "capacity": dict(offering.capacity),
            "sharing": offering.sharing,
            "replicas": offering.replicas,
            "memory_mib": offering.memory_mib,
            "memory_part_numerator": offering.memory_part.numerator,
            "memory_part_denominator": offering.memory_part.denominator,
        }
        for offering in found
    }
    _upsert(Offering, Offering.objects.filter(flavor__cluster=cluster), "key", desired)


def _sync_use(
    discovered: Discovered, pools: Mapping[str, Pool], foreign: Mapping[str, int], blocked: Mapping[str, int]
) -> None:
    totals = {pool.key: pool.total for pool in discovered.pools}
    pool_of = {offering.key: offering.pool for offering in discovered.offerings} | {key: key for key in pools}
    used: dict[str, int] = dict.fromkeys(pools, 0)
    for key, units in foreign.items():
        if key in pool_of:
            used[pool_of[key]] += units
    desired = {
        row.pk: {
            "total": min(totals.get(key, 0), MAX_NUMBER),
            "foreign": min(used[key], MAX_NUMBER),
            "blocked": min(blocked.get(key, 0), MAX_NUMBER),
        }
        for key, row in pools.items()
    }
    _upsert(PoolUse, PoolUse.objects.filter(pool__in=pools.values()), "pool_id", desired)


def _sync_nodes(
    cluster: str,
    discovered: Discovered,
    flavors: Mapping[str, Flavor],
    usages: Mapping[str, NodeUsage],
    per_gpu: Mapping[str, NodeShare],
) -> dict[str, Node]:
    parts: dict[str, dict[str, Fraction]] = defaultdict(dict)
    for pool in discovered.pools:
        parts[pool.flavor][pool.key] = pool.memory_part
    desired = {
        node.name: {
            "cluster_id": cluster,
            "flavor_id": flavors[node.flavor].pk if node.flavor else None,
            "ready": node.ready,
            "tainted": node.tainted,
            "capacity": dict(node.capacity),
            "present": True,
            "supply": node_supply.document(node, per_gpu.get(node.flavor, NodeShare()), parts[node.flavor]),
            "found_problem": node.problem,
            **node_use.columns(usages.get(node.name, node_use.NOTHING), node.problem),
        }
        for node in discovered.nodes
    }
    rows = Node.objects.filter(cluster=cluster)
    _upsert(Node, rows.all(), "name", desired)
    nodes = {row.name: row for row in rows.all()}
    absent = [row.pk for row in nodes.values() if row.present and row.name not in desired]
    if absent:
        rows.filter(pk__in=absent).update(present=False)
    return nodes


def _sync_devices(
    cluster: str, found: Iterable[FoundDevice], nodes: Mapping[str, Node], flavors: Mapping[str, Flavor]
) -> None:
    desired: dict[Any, dict[str, Any]] = {
        (nodes[device.node].pk, device.name): {
            "uuid": device.uuid,
            "flavor_id": flavors[device.flavor].pk,
            "healthy": device.healthy,
            "attributes": dict(device.attributes),
            "present": True,
        }
        for device in found
    }
    rows = {(row.node_id, row.name): row for row in Device.objects.filter(node__cluster=cluster)}
    absent = [row.pk for key, row in rows.items() if row.present and key not in desired]
    new = [Device(node_id=key[0], name=key[1], **values) for key, values in desired.items() if key not in rows]
    changed = [rows[key] for key, values in desired.items() if key in rows and _assign(rows[key], values)]
    Device.objects.bulk_create(new)
    if changed:
        Device.objects.bulk_update(changed, ["uuid", "flavor", "healthy", "attributes", "present"])
    if absent:
        Device.objects.filter(pk__in=absent).update(present=False)


def _upsert(model: type[Row], rows: models.QuerySet[Row], key: str, desired: Mapping[Any, Mapping[str, Any]]) -> bool:
    """Make `rows` have the values of `desired`, {value of `key`: {attribute: value}}, and keep others; return True if
    anything was written.
    """
    current = {getattr(row, key): row for row in rows}
    new = [model(**{key: name}, **values) for name, values in desired.items() if name not in current]
    changed = [current[name] for name, values in desired.items() if name in current and _assign(current[name], values)]
    model._default_manager.bulk_create(new)
    if changed:
        fields = [field.removesuffix("_id") for field in next(iter(desired.values()))]
        model._default_manager.bulk_update(changed, fields)
    return bool(new or changed)


def _assign(row: models.Model, values: Mapping[str, Any]) -> bool:
    """Set attributes; return True if any differed."""
    differing = {name: value for name, value in values.items() if getattr(row, name) != value}
    for name, value in differing.items():
        setattr(row, name, value)
    return bool(differing)
