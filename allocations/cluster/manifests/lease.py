"""Builds and reads the lease: a Kueue Workload that only reserves quota, and whose pods are never created.

Kueue multiplies the requests of the pod template by its count (kueue.x-k8s.io/v1beta2, ``spec.podSets``). ``priority``
is always set and there is no owner reference, so Kueue does not delete the Workload as an orphan.
"""

from datetime import datetime

from allocations.cluster import names
from allocations.domain import reasons
from allocations.domain.admission import PRIORITIES
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec
from allocations.domain.observed_facts import workload_facts
from allocations.domain.phases import LeaseFacts

KIND = "Workload"
PAUSE = "registry.k8s.io/pause:3.10"


def labels(spec: ResolvedSpec) -> dict[str, str]:
    """Return the labels of the allocation's objects."""
    return {
        names.MANAGED: "true",
        "app.kubernetes.io/managed-by": "gpu-portal",
        names.DEPARTMENT: spec.department,
        names.TEAM: spec.team,
        names.PROJECT: spec.project,
        names.ALLOCATION: spec.name,
    }


def ref(spec: ResolvedSpec) -> Ref:
    """Return the allocation's lease."""
    return Ref(KIND, spec.namespace, names.lease(spec.name))


def status_ref(spec: ResolvedSpec) -> Ref:
    """Return the key of the record of the last status write, so that one in flight is not repeated."""
    return Ref(f"{KIND}/status", spec.namespace, names.lease(spec.name))


def build(spec: ResolvedSpec) -> Manifest:
    """Return the Workload with one pod for each slice, which requests the pool's units for one slice as integers."""
    amounts = {resource: str(amount) for resource, amount in sorted(spec.requests.items())}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": KIND,
        "metadata": {
            "name": names.lease(spec.name),
            "namespace": spec.namespace,
            "labels": labels(spec),
            "annotations": {names.REQUEST: spec.lease_record.to_text()},
        },
        "spec": {
            "queueName": names.LOCAL_QUEUE,
            "priority": PRIORITIES[spec.priority],
            "podSets": [
                {
                    "name": "main",
                    "count": spec.slices,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "nodeSelector": dict(spec.node_selector),
                            "tolerations": [dict(t) for t in spec.tolerations],
                            "containers": [
                                {
                                    "name": "slice",
                                    "image": PAUSE,
                                    "resources": {"requests": amounts, "limits": amounts},
                                }
                            ],
                        }
                    },
                }
            ],
        },
    }


def read(lease: ObservedObject | None) -> LeaseFacts | None:
    """Return the facts in the lease's conditions; None if there is no lease.

    The condition ``Evicted`` only counts while quota is reserved (``status.admission``), since Kueue leaves it on a
    workload that is queued again.
    """
    if lease is None:
        return None
    facts = workload_facts(lease)
    conditions, reserved = facts.get("conditions", {}), bool(facts.get("cluster_queue"))
    evicted = conditions.get("Evicted", {}) if reserved else {}
    quota = conditions.get("QuotaReserved", {})
    is_evicted = evicted.get("status") == "True"
    admitted = conditions.get("Admitted", {})
    is_admitted = reserved and admitted.get("status") == "True"
    created_at = facts.get("created_at")
    return LeaseFacts(
        created_at=datetime.fromisoformat(created_at) if created_at else None,
        reserved=reserved,
        admitted=is_admitted,
        admitted_at=datetime.fromisoformat(admitted["at"]) if is_admitted else None,
        pods_ready=conditions.get("PodsReady", {}).get("status") == "True",
        pending_reason="" if reserved else quota.get("reason", ""),
        pending_message="" if reserved else quota.get("message", ""),
        evicted_at=datetime.fromisoformat(evicted["at"]) if is_evicted else None,
        evicted_reason=evicted.get("reason", "") if is_evicted else "",
        evicted_message=reasons.eviction_message(evicted["reason"], evicted.get("message", "")) if is_evicted else "",
    )
