"""Facts about Kueue's objects: Workloads, ClusterQueues and Cohorts. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import cast

from allocations.cluster import names
from allocations.cluster.projectors.fields import GPU_PREFIXES, Raw, conditions, created_at, job_owner, whole
from allocations.cluster.projectors.pod_requests import gpu_requests
from allocations.domain.observed_facts import ClusterQueueFacts, CohortFacts, Condition, ObservedFacts, WorkloadFacts
from portal.core.labels import MAX_LABELS

BYPASSED = "Bypassed scheduling"
UNEVALUATED = "PendingEvaluation"
NOT_YET = "Workload is pending evaluation"
"""How Kueue's message begins as soon as a Workload is in its queue, and before it looked whether it has quota."""

PARENT_VARIANT = "kueue.x-k8s.io/parent-variant"
SET_BY_CONTROLLERS = ("batch.kubernetes.io/", "kueue.x-k8s.io/", names.LABEL)
LEGACY_JOB_LABELS = ("controller-uid", "job-name")


def workload(raw: Raw) -> WorkloadFacts | None:
    """Return the facts of a lease, or of a tenant's Job in a project's queue; None for other Workloads."""
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status", {})
    if _is_variant(metadata):
        return None
    job = job_owner(metadata)
    is_ours = metadata.get("labels", {}).get(names.MANAGED) == "true"
    if not is_ours and not (job and spec.get("queueName") == names.LOCAL_QUEUE):
        return None
    by_type, admission = conditions(raw), status.get("admission", {})
    is_finished = by_type.get("Finished", {}).get("status") == "True"
    facts: WorkloadFacts = {
        "created_at": created_at(raw),
        "conditions": by_type,
        "cluster_queue": admission.get("clusterQueue", ""),
        "usage": {} if is_finished else _usage(admission, status.get("reclaimablePods", ())),
        "record": metadata.get("annotations", {}).get(names.REQUEST, ""),
    }
    if is_ours or job is None:
        return {**facts, "conditions": _without_unevaluated(by_type)}
    of_job: WorkloadFacts = {
        **facts,
        "job": job,
        "priority": spec.get("priority", 0),
        "gpu_requests": _gpu_requests(spec),
        "pods": {
            "requested": sum(pods.get("count", 1) for pods in spec.get("podSets", ())),
            "admitted": sum(pods.get("count", 1) for pods in admission.get("podSetAssignments", ())),
        },
    }
    if labels := _labels(spec):
        of_job["labels"] = labels
    return of_job


def _is_variant(metadata: Raw) -> bool:
    """Return whether Kueue made the Workload to try a flavor for another one (ConcurrentAdmission), which alone counts:
    it belongs to that one, and from Kueue 0.20 has its name as a label.
    """
    owners = metadata.get("ownerReferences", ())
    return PARENT_VARIANT in metadata.get("labels", {}) or any(owner["kind"] == "Workload" for owner in owners)


def _labels(spec: Raw) -> dict[str, str]:
    """Return the labels of the pods of a Job, as many as a request may have, first by key. Those that Kubernetes and
    Kueue set are left out.
    """
    templates = [pods.get("template", {}) for pods in spec.get("podSets", ())[:1]]
    found = next((template.get("metadata", {}).get("labels") or {} for template in templates), {})
    own = sorted(key for key in found if not key.startswith(SET_BY_CONTROLLERS) and key not in LEGACY_JOB_LABELS)
    return {key: str(found[key]) for key in own[:MAX_LABELS]}


def _without_unevaluated(by_type: Mapping[str, Condition]) -> dict[str, Condition]:
    """Return a lease's conditions without those that Kueue sets before it evaluates the lease, since they say nothing:
    most leases get quota milliseconds later.
    """
    quota = by_type.get("QuotaReserved", {})
    is_unevaluated = quota.get("reason") == UNEVALUATED and quota.get("message", "").startswith(NOT_YET)
    left_out = ("QuotaReserved", "Admitted") if is_unevaluated and quota.get("status") == "False" else ()
    return {type_: condition for type_, condition in by_type.items() if type_ not in left_out}


def keep_pending_reason(before: ObservedFacts, after: ObservedFacts) -> ObservedFacts:
    """Return a Workload's new facts, with its earlier pending reason where Kueue replaced it by "Bypassed …".

    Kueue does so when an equivalent workload failed to get quota before. The earlier reason stays unless there was none
    in detail, or the reason has changed since.
    """
    by_type = cast(WorkloadFacts, after).get("conditions", {})
    former = cast(WorkloadFacts, before).get("conditions", {}).get("QuotaReserved", {})
    current = by_type.get("QuotaReserved", {})
    is_pending = current.get("status") == former.get("status") == "False"
    if not (current.get("message", "").startswith(BYPASSED) and is_pending):
        return after
    if not former["message"] or former["reason"] == UNEVALUATED:
        return after
    if current["reason"] not in (former["reason"], UNEVALUATED):
        return after
    kept: Condition = {**current, "reason": former["reason"], "message": former["message"]}
    return {**after, "conditions": {**by_type, "QuotaReserved": kept}}


def _usage(admission: Raw, reclaimable: Iterable[Raw]) -> dict[str, dict[str, int]]:
    """Return the admitted GPUs by flavor and resource, without those of finished pods (``reclaimablePods``)."""
    finished = {pods["name"]: pods["count"] for pods in reclaimable}
    usage: dict[str, Counter[str]] = {}
    for pods in admission.get("podSetAssignments", ()):
        count, left = pods.get("count", 1), pods.get("count", 1) - finished.get(pods["name"], 0)
        for resource, flavor in pods.get("flavors", {}).items():
            if resource.startswith(GPU_PREFIXES):
                amount = whole(pods.get("resourceUsage", {}).get(resource, 0))
                usage.setdefault(flavor, Counter())[resource] += amount * left // count if count else 0
    return {flavor: dict(amounts) for flavor, amounts in usage.items()}


def _gpu_requests(spec: Raw) -> dict[str, int]:
    """Return the GPUs that all pods of a Workload request from device plugins, by resource."""
    requests: Counter[str] = Counter()
    for pods in spec.get("podSets", ()):
        for resource, amount in gpu_requests(pods["template"].get("spec", {})).items():
            requests[resource] += amount * pods.get("count", 1)
    return dict(requests)


def cluster_queue(raw: Raw) -> ClusterQueueFacts:
    """Return the facts of a ClusterQueue; Workloads in it do not show that it is inactive."""
    status, active = raw.get("status", {}), conditions(raw).get("Active", {})
    facts: ClusterQueueFacts = {
        "pending": status.get("pendingWorkloads", 0),
        "reserving": status.get("reservingWorkloads", 0),
        "admitted": status.get("admittedWorkloads", 0),
        **cohort(raw),
    }
    if active.get("status") == "False":
        facts["inactive"] = active["message"]
    return facts


def cohort(raw: Raw) -> CohortFacts:
    """Return the facts of a Cohort: its spec, and whether ``status.effectiveQuota`` stands in its place."""
    facts: CohortFacts = {"spec": raw.get("spec", {})}
    if raw.get("status", {}).get("effectiveQuota"):
        facts["overridden"] = True
    return facts
