"""Facts about pods. Pure."""

from allocations.cluster import names
from allocations.cluster.projectors.fields import Raw, conditions, controller_kind, iso_time, job_owner
from allocations.cluster.projectors.pod_requests import gpu_requests, node_requests
from allocations.domain.objects import FINISHED
from allocations.domain.observed_facts import PodFacts
from quotas.catalog.node_readings import GPU_TAINT


def pod(raw: Raw) -> PodFacts | None:
    """Return the facts of a pod; None for one that neither uses GPUs nor runs on a GPU node.

    A pod without GPUs that tolerates the taint of GPU nodes has only the facts of what it uses of its node. Of a system
    daemon nothing else matters here.
    """
    spec, status, metadata = raw.get("spec", {}), raw.get("status", {}), raw["metadata"]
    labels = metadata.get("labels", {})
    gpus = gpu_requests(spec)
    usage: PodFacts = {
        "phase": status.get("phase", "Pending"),
        "node": spec.get("nodeName", ""),
        "gpus": gpus,
        **node_requests(spec),
    }
    if not gpus and not spec.get("resourceClaims") and names.ALLOCATION not in labels:
        return usage if usage["node"] and any(map(_tolerates_gpu_taint, spec.get("tolerations", ()))) else None
    by_type = conditions(raw)
    scheduled = by_type.get("PodScheduled", {})
    job = job_owner(metadata)
    extended_claim = status.get("extendedResourceClaimStatus", {}).get("resourceClaimName", "")
    hold_class = spec.get("priorityClassName", "")
    facts: PodFacts = {
        **usage,
        "ready_at": by_type.get("Ready", {}).get("at", ""),
        "unschedulable": scheduled.get("message", "") if scheduled.get("reason") == "Unschedulable" else "",
    }
    if labels.get(names.HOLDER) == "true":
        facts["holder"] = True
    if job:
        facts["job"], facts["job_name"], facts["scheduled_at"] = job["uid"], job["name"], scheduled.get("at", "")
    if owner_kind := controller_kind(metadata):
        facts["owner_kind"] = owner_kind
    if extended_claim:
        facts["extended_claim"] = extended_claim
    if hold_class.startswith(names.HOLD):
        facts["class"] = hold_class
    if ended := _finished_at(status):
        facts["finished_at"] = ended
    if "deletionTimestamp" in metadata:
        facts["ends_by"] = iso_time(metadata["deletionTimestamp"])
    return facts


def _finished_at(status: Raw) -> str:
    """Return when the last container of a finished pod ended, as the kubelet says; "" if one has no such time."""
    if status.get("phase") not in FINISHED:
        return ""
    ends = [one.get("state", {}).get("terminated", {}).get("finishedAt") for one in status.get("containerStatuses", ())]
    return max(iso_time(str(at)) for at in ends) if ends and all(ends) else ""


def _tolerates_gpu_taint(toleration: Raw) -> bool:
    """Return whether the toleration matches the taint of GPU nodes."""
    return toleration.get("key", "") in ("", GPU_TAINT)
