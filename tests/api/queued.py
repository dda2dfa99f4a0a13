"""Tenants' queued Jobs in the mirror, as the watcher writes them."""

from typing import Any
from uuid import UUID, uuid4

from allocations.models import MirrorObject
from portal.core import clock

GPU = "nvidia.com/gpu"
FULL = {"status": "False", "reason": "WaitingForQuota", "message": "1 more needed", "at": ""}


def job(name: str, namespace: str, **facts: Any) -> UUID:
    """A queued Job as the watcher writes it, asking two GPUs."""
    uid = uuid4()
    defaults = {
        "job": {"name": name, "uid": str(uid)},
        "created_at": "2026-11-02T12:00:00+00:00",
        "conditions": {"QuotaReserved": FULL},
        "cluster_queue": "",
        "usage": {},
        "asks": {GPU: 2},
        "priority": 0,
        "record": "",
    }
    MirrorObject.objects.create(
        kind="Workload",
        namespace=namespace,
        name=f"job-{name}",
        uid=str(uuid4()),
        resource_version=1,
        facts={**defaults, **facts},
        seen_at=clock.now(),
    )
    return uid
