"""An allocation's hold by DRA as a watcher records it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS, Observation
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.mirror_writer import record_sync
from portal.core import clock
from tests.support.clusters import LOCAL

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
DEVICES = [{"request": "slice-0", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": "gpu-1"}]


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def raw(kind: str, row: Allocation, name: str, revision: int, **body: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": row.project.namespace,
        "uid": f"{kind}-{row.name}",
        "resourceVersion": str(revision),
        "labels": {names.MANAGED: "true", names.ALLOCATION: row.name, names.PROJECT: row.project.slug},
    }
    return {"kind": kind, "metadata": metadata, **body}


def seen(body: Mapping[str, Any], seconds: float, *, live: bool = True, gone: bool = False) -> Observation:
    observation = kinds.observe(KINDS[body["kind"]], body, at=at(seconds), live=live, gone=gone)
    assert observation is not None
    return observation


def claim(row: Allocation, revision: int, devices: list[dict[str, str]]) -> dict[str, Any]:
    allocation = {"devices": {"results": devices}, "allocationTimestamp": "2026-11-02T11:59:00Z"} if devices else {}
    return raw("ResourceClaim", row, row.name, revision, status={"allocation": allocation})


def holder(row: Allocation, revision: int) -> dict[str, Any]:
    spec = {"nodeName": "h100-0", "containers": [], "resourceClaims": [{"name": "g", "resourceClaimName": row.name}]}
    return raw("Pod", row, names.holder(row.name), revision, spec=spec, status={"phase": "Running"})


def hold_quota(row: Allocation, revision: int, *, listed: bool = True, written: float | None = None) -> dict[str, Any]:
    """Return the hold quota of an allocation by device plugin, in force, with or without its count; ``written`` is when
    Kubernetes wrote its status, in seconds after T0.
    """
    slices = {row.name: {row.offering.resource: row.count}} if listed else {}
    hard = {f"requests.{row.offering.resource}": str(row.count if listed else 0)}
    body = raw("ResourceQuota", row, names.hold_slot(row.number), revision, spec={"hard": hard}, status={"hard": hard})
    body["metadata"]["annotations"] = {names.SLICES: json.dumps(slices)}
    del body["metadata"]["labels"][names.ALLOCATION]
    if written is not None:
        time = f"{at(written):%Y-%m-%dT%H:%M:%SZ}"
        status = {"manager": "kube-controller-manager", "subresource": "status", "time": time}
        body["metadata"]["managedFields"] = [{**status, "fieldsV1": {"f:status": {"f:hard": {}, "f:used": {}}}}]
    return body


def hold(row: Allocation, seconds: float = 0, revision: int = 10, *, live: bool = True) -> list[Observation]:
    return [
        seen(claim(row, revision, DEVICES), seconds, live=live),
        seen(holder(row, revision + 1), seconds, live=live),
    ]


def quotas_listed(revision: int, cluster: str = LOCAL) -> None:
    """Record that the cluster's mirror of quotas is complete up to a revision."""
    record_sync(cluster, (KINDS["ResourceQuota"], revision, clock.now()))


def mirror_lease(row: Allocation) -> None:
    """Mirror the lease of the allocation, with the record from which the row can be created again."""
    quotas_listed(1)
    MirrorObject.objects.create(
        cluster_id=row.project.cluster_id,
        kind="Workload",
        namespace=row.project.namespace,
        name=names.lease(row.name),
        uid="u",
        resource_version=1,
        allocation=row.name,
        facts={"record": spec_of_row.record(row, spec_of_row.spec(row)).to_text()},
        seen_at=clock.now(),
    )
