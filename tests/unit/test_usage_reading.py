"""How the checks of the cluster tests read pods, claims, quotas and workloads."""

from collections import Counter
from typing import Any

from tests.support.cluster.usage import SLICES, Holder, Snapshot, read

NOW = 1_780_000_000.0
BEFORE, AFTER = "2026-05-28T20:00:00Z", "2026-05-28T21:00:00Z"
GPU = "nvidia.com/gpu"
HOLD, JOB = Holder("vision", "allocation", "train"), Holder("vision", "job", "7")


def pod(gpus: int = 1, *, phase: str = "Running", ending: str = "", **metadata: Any) -> dict[str, Any]:
    resources = {"limits": {GPU: str(gpus)}} if gpus else {}
    marked = {"deletionTimestamp": ending} if ending else {}
    named = {"name": "main", "namespace": "vision", "uid": "p"}
    return {
        "metadata": {**named, **marked, **metadata},
        "spec": {"nodeName": "l40s-0", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": phase},
    }


def workload(status: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "w", "namespace": "vision", "labels": labels}, "status": status}


def claim(*users: str, devices: int = 1) -> dict[str, Any]:
    results = [{"pool": "h100-0", "device": f"gpu-{n}"} for n in range(devices)]
    return {
        "metadata": {"name": "train", "namespace": "vision", "labels": LABEL},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
        },
    }


LABEL = {"gpu-portal.io/allocation": "train"}
RESERVED = {"podSetAssignments": [{"name": "main", "count": 4, "resourceUsage": {GPU: "8", "cpu": "4"}}]}


def seen(**found: list[dict[str, Any]]) -> dict[Holder, Any]:
    return read(Snapshot(NOW, NOW, **{"pods": [], "claims": [], "quotas": [], "workloads": [], **found}))


def test_a_pod_counts_for_its_allocation_or_its_job_and_else_for_nobody() -> None:
    owner = {"kind": "Job", "uid": "7", "controller": True}
    found = seen(pods=[pod(2, labels=LABEL), pod(3, ownerReferences=[owner]), pod(1)])
    assert {holder: usage.counted for holder, usage in found.items()} == {
        HOLD: Counter({SLICES: 2}),
        JOB: Counter({GPU: 3}),
        Holder("vision", "pod", "main"): Counter({GPU: 1}),
    }


def test_a_finished_pod_uses_nothing() -> None:
    assert seen(pods=[pod(phase="Succeeded", labels=LABEL)]) == {}


def test_a_pod_within_its_grace_is_used_and_does_not_count_as_excess() -> None:
    usage = seen(pods=[pod(ending=AFTER, labels=LABEL)])[HOLD]
    assert (usage.used.total(), usage.counted.total()) == (1, 0)


def test_a_pod_past_its_grace_counts_again() -> None:
    assert seen(pods=[pod(ending=BEFORE, labels=LABEL)])[HOLD].counted.total() == 1


def test_a_job_reserves_less_what_its_finished_pods_gave_back() -> None:
    job = {"kueue.x-k8s.io/job-uid": "7"}
    status = {"admission": RESERVED, "reclaimablePods": [{"name": "main", "count": 1}]}
    assert seen(workloads=[workload(status, **job)])[JOB].reserved == Counter({GPU: 6})


def test_a_finished_workload_reserves_nothing() -> None:
    status = {"admission": RESERVED, "conditions": [{"type": "Finished", "status": "True"}]}
    assert not seen(workloads=[workload(status, **{"kueue.x-k8s.io/job-uid": "7"})])[JOB].reserved


def test_a_lease_reserves_slices() -> None:
    assert seen(workloads=[workload({"admission": RESERVED}, **LABEL)])[HOLD].reserved == Counter({SLICES: 4})


def test_devices_of_a_claim_count_once_however_many_pods_share_it() -> None:
    usage = seen(pods=[pod(0, uid="a"), pod(0, uid="b")], claims=[claim("a", "b", devices=2)])[HOLD]
    assert (usage.counted[SLICES], usage.used[SLICES]) == (2, 2)


def test_a_claim_that_only_its_holder_keeps_is_not_used() -> None:
    keeper = pod(0, uid="h", labels={**LABEL, "gpu-portal.io/holder": "true"})
    usage = seen(pods=[keeper], claims=[claim("h")])[HOLD]
    assert (usage.counted[SLICES], usage.used[SLICES]) == (1, 0)


def test_slices_are_held_when_the_quotas_status_shows_them() -> None:
    metadata = {
        "name": "gpu-portal-hold-slot.0",
        "namespace": "vision",
        "annotations": {"gpu-portal.io/slices-of": '{"train": {"nvidia.com/gpu": 3}}'},
    }
    late = {"metadata": metadata, "status": {"hard": {f"requests.{GPU}": "0"}}}
    shown = {"metadata": metadata, "status": {"hard": {f"requests.{GPU}": "3"}}}
    assert [(u.held, u.occupied) for q in (late, shown) for u in seen(quotas=[q]).values()] == [(0, 3), (3, 3)]
