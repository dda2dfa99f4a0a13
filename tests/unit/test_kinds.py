"""The stored facts of a workload: its requests, and its use of the team's queue."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.errors import ClusterRefused
from allocations.cluster.kinds import KINDS, is_ours, observe
from allocations.cluster.projectors import devices, workloads
from allocations.cluster.projectors.pod_requests import gpu_requests
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import node_facts
from allocations.reconcile.engine.apply import name_conflict

GPU = "nvidia.com/gpu"
JOB = {"kind": "Job", "name": "train", "uid": "6f9d0c1e-0000-4000-8000-000000000000", "controller": True}


def workload(
    *, queue: str = names.LOCAL_QUEUE, status: dict[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {GPU: "2"}, "limits": {GPU: "2"}}}
    return {
        "metadata": {"name": "job-train-1a2b3", "ownerReferences": [JOB], **metadata},
        "spec": {
            "queueName": queue,
            "priority": 7,
            "podSets": [{"name": "main", "count": 3, "template": {"spec": {"containers": [container]}}}],
        },
        "status": status or {},
    }


def admitted(**more: Any) -> dict[str, Any]:
    assignment = {"name": "main", "count": 3, "flavors": {GPU: "l40s"}, "resourceUsage": {GPU: "6"}}
    return {"admission": {"clusterQueue": "team-vision", "podSetAssignments": [assignment]}, **more}


def facts(raw: dict[str, Any]) -> Any:
    return KINDS["Workload"].projector(raw)


def test_a_queued_job_is_remembered_with_what_all_its_pods_ask() -> None:
    found = facts(workload())
    assert found["job"] == {"name": "train", "uid": JOB["uid"]}
    assert (found["gpu_requests"], found["priority"]) == ({GPU: 6}, 7)
    assert (found["cluster_queue"], found["usage"]) == ("", {})


def test_an_admitted_job_takes_of_its_queue_what_kueue_assigned_by_flavor() -> None:
    found = facts(workload(status=admitted()))
    assert (found["cluster_queue"], found["usage"]) == ("team-vision", {"l40s": {GPU: 6}})


def test_pods_that_are_done_give_their_part_back() -> None:
    found = facts(workload(status=admitted(reclaimablePods=[{"name": "main", "count": 2}])))
    assert found["usage"] == {"l40s": {GPU: 2}}


def test_a_finished_job_takes_nothing_though_its_admission_still_stands() -> None:
    done = {"type": "Finished", "status": "True", "reason": "Succeeded"}
    assert facts(workload(status=admitted(conditions=[done])))["usage"] == {}


def test_cpu_and_memory_are_not_counted() -> None:
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "l40s"}, "resourceUsage": {"cpu": "500m"}}
    assert facts(workload(status={"admission": {"podSetAssignments": [assignment]}}))["usage"] == {}


@pytest.mark.parametrize(
    "variant",
    [
        {"labels": {names.MANAGED: "true", "kueue.x-k8s.io/parent-variant": "train-1-lease"}},
        {
            "labels": {names.MANAGED: "true"},
            "ownerReferences": [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "train-1-lease"}],
        },
    ],
    ids=["by its label", "by its owner"],
)
def test_a_variant_of_a_workload_is_not_counted_beside_it(variant: dict[str, Any]) -> None:
    assert facts(workload(status=admitted(), **variant)) is None


@pytest.mark.parametrize("kind", ["ClusterQueue", "Cohort"])
def test_a_quota_that_kueue_counts_in_place_of_the_spec_is_noticed(kind: str) -> None:
    project = {"ClusterQueue": workloads.cluster_queue, "Cohort": workloads.cohort}[kind]
    plain: dict[str, Any] = {"spec": {"resourceGroups": []}, "status": {}}
    assert "overridden" not in project(plain)
    assert project({**plain, "status": {"effectiveQuota": [{"name": "l40s"}]}})["overridden"] is True


def test_a_workload_of_another_queue_concerns_nobody_here() -> None:
    assert facts(workload(queue="other")) is None


def test_a_lease_says_what_it_takes_too() -> None:
    assignment = {"name": "main", "flavors": {GPU: "l40s"}, "resourceUsage": {GPU: "2"}}
    status = {"admission": {"clusterQueue": "team-vision", "podSetAssignments": [assignment]}}
    lease = {"metadata": {"labels": {names.MANAGED: "true"}}, "status": status}
    assert facts(lease)["usage"] == {"l40s": {GPU: 2}}
    assert "job" not in facts(lease)


def waiting(reason: str, message: str) -> dict[str, Any]:
    condition = {"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
    return dict(facts(workload(status={"conditions": [condition]})))


def test_the_reason_in_detail_outlives_kueues_bypass() -> None:
    detailed = waiting("WaitingForQuota", "insufficient unused quota for nvidia.com/gpu in flavor l40s, 1 more needed")
    bypassed = waiting("WaitingForQuota", "Bypassed scheduling evaluation since a like workload failed")
    assert KINDS["Workload"].merge(detailed, bypassed)["conditions"] == detailed["conditions"]


def test_another_reason_replaces_the_one_before() -> None:
    before = waiting("WaitingForQuota", "1 more needed")
    now = waiting("Suspended", "ClusterQueue team-vision is inactive")
    assert KINDS["Workload"].merge(before, now) == now


def test_what_kueue_had_not_looked_at_says_no_detail_to_keep() -> None:
    before = waiting("PendingEvaluation", "Preempted to accommodate a workload; preemptor path: /research/team-secret")
    now = waiting("WaitingForQuota", "Bypassed scheduling evaluation since a like workload failed")
    assert KINDS["Workload"].merge(before, now) == now


def test_another_reason_is_not_told_by_the_detail_of_the_one_before() -> None:
    before = waiting("ExceedsMaxQuota", "more than the team's quota")
    now = waiting("WaitingForQuota", "Bypassed scheduling evaluation since a like workload failed")
    assert KINDS["Workload"].merge(before, now) == now


def leased(*conditions: dict[str, str]) -> dict[str, Any]:
    status = {"conditions": list(conditions)}
    return dict(facts({"metadata": {"labels": {names.MANAGED: "true"}}, "status": status}))


UNEVALUATED = {
    "type": "QuotaReserved",
    "status": "False",
    "reason": "PendingEvaluation",
    "message": "Workload is pending evaluation in the scheduling queue",
}
NOT_ADMITTED = {"type": "Admitted", "status": "False", "reason": "NoReservation", "message": "no reservation"}


def test_a_lease_that_kueue_has_not_evaluated_yet_says_what_one_without_conditions_says() -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "Preempted"}
    assert leased(UNEVALUATED, NOT_ADMITTED) == leased()
    assert leased(evicted, UNEVALUATED, NOT_ADMITTED) == leased(evicted)


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "WaitingForQuota"},
        {"message": "Bypassed scheduling evaluation since a like workload failed"},
        {"message": "Preempted to accommodate a workload"},
    ],
)
def test_what_kueue_says_of_a_lease_that_it_has_evaluated_is_kept(change: dict[str, str]) -> None:
    assert leased({**UNEVALUATED, **change}, NOT_ADMITTED)["conditions"].keys() == {"QuotaReserved", "Admitted"}


def gpus(*init: tuple[int, str], main: int = 4) -> Any:
    """Return the device plugin requests of a pod whose init containers request these numbers, each with its
    restartPolicy.
    """

    def container(amount: int, **more: str) -> dict[str, Any]:
        return {"name": "c", "resources": {"limits": {GPU: str(amount)}}, **more}

    starting = [container(amount, **({"restartPolicy": policy} if policy else {})) for amount, policy in init]
    return gpu_requests({"containers": [container(main)], "initContainers": starting}).get(GPU)


def test_a_gpu_asked_for_by_the_name_of_its_device_class_is_a_gpu() -> None:
    implicit = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    assert gpu_requests({"containers": [{"resources": {"limits": {implicit: "2", "cpu": "1"}}}]}) == {implicit: 2}


def test_a_pod_asks_what_its_containers_take_at_the_most_at_once() -> None:
    assert gpus() == 4
    assert gpus((2, "")) == 4
    assert gpus((6, "")) == 6


def test_a_sidecar_runs_beside_all_that_comes_after_it() -> None:
    assert gpus((4, "Always")) == 8
    assert gpus((1, "Always"), (5, "")) == 6
    assert gpus((5, ""), (1, "Always")) == 5
    assert gpus((1, "Always"), (1, "Always")) == 6


def test_shares_of_a_device_are_read_as_kubernetes_writes_them() -> None:
    given = {"request": "r", "driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0", "shareID": "1"}
    result = {**given, "consumedCapacity": {"shares": "1k", "memory": "1Gi"}}
    found = devices.claim({"status": {"allocation": {"devices": {"results": [result]}}}})
    assert found["devices"][0]["consumed"] == {"shares": "1000", "memory": "1Gi"}


def test_a_claim_that_the_scheduler_made_for_a_pod_says_for_which() -> None:
    made = {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {"kind": "Pod", "name": "train-a", "uid": "p1", "controller": True}
    project = KINDS["ResourceClaim"].projector
    assert (project({"metadata": {"annotations": made, "ownerReferences": [owner]}}) or {})["pod"] == "p1"
    assert "pod" not in (project({"metadata": {"ownerReferences": [owner]}}) or {})


def test_a_pod_says_which_claim_the_scheduler_made_for_it() -> None:
    container = {"resources": {"limits": {GPU: "1"}}}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "train-a-extended-resources-x"}}
    found = KINDS["Pod"].projector({"metadata": {}, "spec": {"containers": [container]}, "status": status})
    assert (found or {})["extended_claim"] == "train-a-extended-resources-x"


def test_a_device_class_says_by_which_resource_pods_may_ask_and_what_it_selects() -> None:
    spec = {"extendedResourceName": GPU, "selectors": [{"cel": {"expression": "true"}}]}
    project = KINDS["DeviceClass"].projector
    assert project({"spec": spec}) == {"extended_resource": GPU, "selectors": ["true"]}
    assert project({"spec": {}}) == {"extended_resource": "", "selectors": []}


def test_a_queue_that_admits_nothing_says_why() -> None:
    stopped = {
        "type": "Active",
        "status": "False",
        "reason": "Stopped",
        "message": "Can't admit: ClusterQueue is stopped",
    }
    found = KINDS["ClusterQueue"].projector({"metadata": {"name": "team-vision"}, "status": {"conditions": [stopped]}})
    assert found is not None
    assert found["inactive"] == stopped["message"]


def test_a_thousand_is_read_as_kubernetes_writes_it() -> None:
    asking = {"containers": [{"name": "main", "resources": {"limits": {GPU: "1k"}}}]}
    pod = KINDS["Pod"].projector({"metadata": {"name": "big"}, "spec": asking})
    assert pod is not None
    assert pod["gpus"] == {GPU: 1000}
    big = {"name": "main", "count": 1, "flavors": {GPU: "l40s"}, "resourceUsage": {GPU: "1k"}}
    assert facts(workload(status={"admission": {"podSetAssignments": [big]}}))["usage"] == {"l40s": {GPU: 1000}}
    node = KINDS["Node"].projector({"metadata": {"name": "n"}, "status": {"allocatable": {GPU: "2k"}}})
    assert node is not None
    assert node["allocatable"] == {GPU: 2000}


@pytest.mark.parametrize("managed", [True, False], ids=["the portal's own", "a stranger's"])
def test_what_a_stranger_made_unreadable_keeps_nothing_else_from_being_seen(managed: bool) -> None:
    labels = {names.MANAGED: "true"} if managed else {}
    asking = {"containers": [{"name": "main", "resources": {"limits": {GPU: "many"}}}]}
    raw = {"metadata": {"name": "odd", "uid": "u", "resourceVersion": "1", "labels": labels}, "spec": asking}
    seen = partial(observe, KINDS["Pod"], raw, at=datetime(2026, 11, 2, tzinfo=UTC), live=True)
    if managed:
        with pytest.raises(ValueError, match="many"):
            seen()
    else:
        assert seen() is None


def fields_of(manager: str, operation: str = "Apply") -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:queueName": {}}}}


@pytest.mark.parametrize(
    ("labels", "managers", "ours"),
    [
        ({names.MANAGED: "true"}, [fields_of(names.FIELD_MANAGER)], True),
        ({names.MANAGED: "true"}, [fields_of("kubectl"), fields_of(names.FIELD_MANAGER)], True),
        ({}, [fields_of(names.FIELD_MANAGER)], False),
        ({names.MANAGED: "false"}, [fields_of(names.FIELD_MANAGER)], False),
        ({names.MANAGED: "true"}, [fields_of("kubectl")], False),
        ({names.MANAGED: "true"}, [fields_of(names.FIELD_MANAGER, "Update")], False),
        ({names.MANAGED: "true"}, [], False),
    ],
)
def test_an_object_is_ours_by_its_label_and_by_our_apply(
    labels: dict[str, str], managers: list[dict[str, Any]], ours: bool
) -> None:
    assert is_ours(workload(labels=labels, managedFields=managers)) is ours


def test_an_object_without_labels_is_not_ours() -> None:
    assert not is_ours(workload(managedFields=[fields_of(names.FIELD_MANAGER)], labels=None))


def test_what_is_in_the_way_is_named_with_what_would_help_and_what_the_api_server_said() -> None:
    cause = {"field": "spec", "message": "field is immutable"}
    refusal = ClusterRefused(422, "Invalid", "spec: field is immutable", [cause])
    told = name_conflict(Ref("ResourceClaim", "vision-train", "a"), refusal)
    assert (told.status, told.reason, told.causes) == (422, "Invalid", (cause,))
    assert "A ResourceClaim named a in vision-train is in the way" in told.message
    assert "Delete it or give it another name" in told.message
    assert told.message.endswith("spec: field is immutable")


@pytest.mark.parametrize("time", [{}, {"lastTransitionTime": None}], ids=["absent", "null"])
def test_a_node_whose_condition_has_no_time_is_read(time: dict[str, Any]) -> None:
    """Go writes a time that was never set as null."""
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", **time}
    status = {"capacity": {GPU: "4"}, "allocatable": {GPU: "4"}, "conditions": [condition]}
    raw = {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}, "spec": {}, "status": status}
    seen = observe(KINDS["Node"], raw, at=datetime(2026, 11, 2, tzinfo=UTC), live=True)
    assert seen is not None
    found = node_facts(seen)
    assert (found["ready"], found["conditions"]["Ready"]["at"]) == (True, "")
