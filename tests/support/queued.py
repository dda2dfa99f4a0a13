"""Tenants' queued Jobs in the mirror, as the watcher writes them."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from allocations.models import Allocation, MirrorObject
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering
from tests.support.clusters import LOCAL

GPU = "nvidia.com/gpu"
FULL = {"status": "False", "reason": "WaitingForQuota", "message": "1 more needed", "at": ""}


def job(name: str, namespace: str, **facts: Any) -> UUID:
    """Mirror a queued Job that requests two GPUs."""
    uid = uuid4()
    defaults = {
        "job": {"name": name, "uid": str(uid)},
        "created_at": "2026-11-02T12:00:00+00:00",
        "conditions": {"QuotaReserved": FULL},
        "cluster_queue": "",
        "usage": {},
        "gpu_requests": {GPU: 2},
        "priority": 0,
        "record": "",
    }
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="Workload",
        namespace=namespace,
        name=f"job-{name}",
        uid=str(uuid4()),
        resource_version=1,
        facts={**defaults, **facts},
        seen_at=clock.now(),
    )
    return uid


def crowd(member: User, project: Project, offering: Offering, size: int) -> None:
    """Create entries that wait in the team's queue, alternately allocations, with leases in the mirror, and Jobs; one
    second apart.
    """
    first = clock.now() - timedelta(days=1)
    allocations, leases = [], []
    for n in range(0, size, 2):
        at = first + timedelta(seconds=n)
        name = f"waits-{n}"
        allocations.append(
            Allocation(
                name=name,
                number=n // 2,
                project=project,
                offering=offering,
                requested_by=member,
                count=1,
                created_at=at,
                ends_at=at + timedelta(days=3),
                phase="queued",
                phase_since=at,
                reason="WaitingForQuota",
                message="1 more needed",
            )
        )
        lease = {"conditions": {"QuotaReserved": FULL}, "cluster_queue": "", "usage": {}, "record": "{}"}
        leases.append(_workload(f"lease-{name}", project.namespace, lease, allocation=name))
    Allocation.objects.bulk_create(allocations)
    MirrorObject.objects.bulk_create(leases)
    MirrorObject.objects.bulk_create(
        _workload(f"job-own-{n}", project.namespace, _facts(f"own-{n}", uuid4(), first + timedelta(seconds=n)))
        for n in range(1, size, 2)
    )


def _facts(name: str, uid: UUID, at: datetime) -> dict[str, Any]:
    return {
        "job": {"name": name, "uid": str(uid)},
        "created_at": at.isoformat(),
        "conditions": {"QuotaReserved": FULL},
        "cluster_queue": "",
        "usage": {},
        "gpu_requests": {GPU: 2},
        "priority": 100,
        "record": "",
    }


def _workload(name: str, namespace: str, facts: dict[str, Any], allocation: str = "") -> MirrorObject:
    return MirrorObject(
        cluster_id=LOCAL,
        kind="Workload",
        namespace=namespace,
        name=name,
        uid=str(uuid4()),
        resource_version=1,
        allocation=allocation,
        facts=facts,
        seen_at=clock.now(),
    )
