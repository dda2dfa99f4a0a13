"""The GPUs of DRA flavors with their current allocations, in a fixed number of queries.

Allocations are read from all ResourceClaims in the mirror, including those that the portal did not create.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

from django.db.models.fields.json import KT

from allocations.capacity.devices import PhysicalGpu, SliceShape
from allocations.capacity.packing import FlavorDevices
from allocations.models import MirrorObject
from portal.core.reading import read_rows
from quotas.catalog import geometry, published
from quotas.catalog.layouts import parent_gpu
from quotas.catalog.models import Device, Flavor, Offering
from quotas.catalog.nvidia import CLIQUE_LABEL, DRA_DRIVER

GPU_NAME = "gpu"
"""Name of the GPU that represents all GPUs in the same state."""
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
ATTRIBUTES = tuple(f"attributes__{name}" for name in ("type", "profile", "parentUUID", PCIE_ROOT))
ALLOCATED = """
    SELECT claim.cluster_id, device ->> 'pool' AS node, device ->> 'device' AS device
    FROM allocations_mirrorobject AS claim, jsonb_array_elements(claim.facts -> 'devices') AS device,
         generate_series(1, coalesce((device -> 'consumed' ->> 'shares')::int, 1))
    WHERE claim.kind = 'ResourceClaim' AND device ->> 'driver' = %(driver)s
"""
# Device names without their GPU's, so that GPUs in the same state look alike: gpu-3-mig-1g10gb-19-0 becomes
# 1g10gb-19-0, gpu-3 becomes "". Published and allocated devices are combined by grouping: PostgreSQL cannot estimate
# how many devices claims have, and would join them row by row.
STATES = f"""
    WITH allocated AS ({ALLOCATED}), device AS (
        SELECT device.flavor_id, node.cluster_id, node.name AS node, node.blocked_gpus, device.name AS name,
               device.attributes, false AS is_allocated
        FROM catalog_device AS device JOIN catalog_node AS node ON node.id = device.node_id
        WHERE device.flavor_id = ANY(%(flavors)s) AND device.healthy AND device.present
          AND node.ready AND node.present AND node.tainted
        UNION ALL SELECT NULL, cluster_id, node, 0, device, NULL, true FROM allocated
    ), gpu AS (
        SELECT max(flavor_id) AS flavor_id, max(blocked_gpus) AS blocked_gpus,
               CASE WHEN max(blocked_gpus) > 0 THEN node ELSE '' END AS node,
               coalesce(jsonb_object_agg(split_part(name, '-mig-', 2), attributes ->> 'profile')
                        FILTER (WHERE attributes ->> 'type' = 'mig'), '{{}}') AS mig_profiles,
               coalesce(array_agg(split_part(name, '-mig-', 2) ORDER BY name)
                        FILTER (WHERE is_allocated), '{{}}') AS allocated
        FROM device GROUP BY device.cluster_id, device.node, split_part(name, '-mig-', 1)
    )
    SELECT flavor_id, mig_profiles::text, allocated, node, blocked_gpus, count(*) AS number
    FROM gpu WHERE flavor_id IS NOT NULL GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 (built from constants)


def slice_shape(offering: Offering) -> SliceShape:
    """Return the shape of the offering's slices; needs the flavor."""
    return SliceShape(offering.kind, offering.profile, offering.replicas)


def of_flavors(flavors: Iterable[Flavor], *, cliques: bool = False) -> dict[int, FlavorDevices]:
    """Return the healthy GPUs on usable nodes by flavor id. With ``cliques``, one more query reads NVLink cliques.

    Queries run when needed: one for the number of GPUs in each state, two more for each single GPU.
    """
    by_id = {flavor.pk: flavor for flavor in flavors}
    states, gpus = cache(lambda: _states(by_id)), cache(lambda: _gpus(by_id, cliques=cliques))
    return {
        pk: FlavorDevices(
            lambda pk=pk: gpus()[pk],  # type: ignore[misc]  # mypy does not take a default for a parameter
            published.from_document(flavor.geometry),
            states=lambda pk=pk: states()[pk],  # type: ignore[misc]
            part_of=partial(_profile_part, flavor),
        )
        for pk, flavor in by_id.items()
    }


def _profile_part(flavor: Flavor, profile: str) -> Fraction:
    return geometry.profile_part(flavor.product, profile, flavor.whole_gpu_mib)


def _states(flavors: Iterable[int]) -> dict[int, list[tuple[PhysicalGpu, int]]]:
    """Return one GPU for each state with the number of GPUs in it, by flavor id."""
    states: dict[int, list[tuple[PhysicalGpu, int]]] = {pk: [] for pk in flavors}
    for row in read_rows(STATES, {"driver": DRA_DRIVER, "flavors": list(states)}):
        gpu = PhysicalGpu(
            row.node,
            GPU_NAME,
            "",
            allocated=tuple(map(_device_name, row.allocated)),
            mig_profiles={_device_name(name): profile for name, profile in json.loads(row.mig_profiles).items()},
            blocked_gpus=Fraction(row.blocked_gpus),
        )
        states[row.flavor_id].append((gpu, row.number))
    return states


def _device_name(suffix: str) -> str:
    return f"{GPU_NAME}-mig-{suffix}" if suffix else GPU_NAME


def _gpus(flavors: Iterable[int], *, cliques: bool) -> dict[int, list[PhysicalGpu]]:
    allocated = _allocated()
    clique_by_node = _cliques() if cliques else {}
    gpus: dict[int, list[PhysicalGpu]] = {pk: [] for pk in flavors}
    # Only the attributes that are needed, as text: reading all attributes of every GPU took longer than the rest.
    rows = Device.objects.filter(
        flavor__in=list(gpus), healthy=True, present=True, node__ready=True, node__present=True, node__tainted=True
    ).values_list(
        "flavor_id", "node__cluster", "node__name", "node__blocked_gpus", "name", "uuid", *map(KT, ATTRIBUTES)
    )
    devices_by_gpu: dict[tuple[int, str, str, str], list[_PublishedDevice]] = defaultdict(list)
    blocked_by_node: dict[tuple[str, str], Fraction] = {}
    for flavor, cluster, node, blocked_gpus, *columns in rows.order_by():
        device = _PublishedDevice(*columns)
        blocked_by_node[cluster, node] = Fraction(blocked_gpus)
        devices_by_gpu[flavor, cluster, node, parent_gpu(device.name)].append(device)
    for (flavor, cluster, node, name), devices in devices_by_gpu.items():
        first = min(devices)
        gpus[flavor].append(
            PhysicalGpu(
                node=node,
                name=name,
                uuid=first.parent_uuid or first.uuid,
                pcie_root=first.pcie_root or "",
                clique=clique_by_node.get((cluster, node), ""),
                allocated=tuple(sorted(allocated.get((cluster, node, name), ()))),
                mig_profiles={device.name: device.profile or "" for device in devices if device.type == "mig"},
                blocked_gpus=blocked_by_node[cluster, node],
            )
        )
    return gpus


class _PublishedDevice(NamedTuple):
    """A device as its driver publishes it; None for attributes that it does not publish."""

    name: str
    uuid: str
    type: str | None
    profile: str | None
    parent_uuid: str | None
    pcie_root: str | None


def _allocated() -> dict[tuple[str, str, str], list[str]]:
    """Return the names of the devices allocated to claims, by cluster, node and GPU."""
    allocated: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in read_rows(ALLOCATED, {"driver": DRA_DRIVER}):
        allocated[row.cluster_id, row.node, parent_gpu(row.device)].append(row.device)
    return allocated


def clique_of(cluster: str, nodes: Iterable[str]) -> str:
    """Return the NVLink clique of the first of these nodes that has one; "" if none has."""
    by_node = _cliques()
    return next((by_node[cluster, node] for node in sorted(nodes) if (cluster, node) in by_node), "")


def _cliques() -> dict[tuple[str, str], str]:
    """Return the NVLink clique of each node that has one, by cluster and node."""
    nodes = MirrorObject.objects.filter(kind="Node").values_list("cluster", "name", "facts__labels")
    return {(cluster, name): clique for cluster, name, labels in nodes if (clique := (labels or {}).get(CLIQUE_LABEL))}
