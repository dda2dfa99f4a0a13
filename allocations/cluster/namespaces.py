"""Reads Jobs, pods and labels of a namespace from the API server, since the mirror does not have all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allocations.cluster import names
from allocations.cluster.client import Client
from allocations.cluster.projectors.pod_requests import gpu_requests
from allocations.domain.objects import Ref

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
PAGE = 500


@dataclass(frozen=True)
class QueuedJob:
    """A tenant's own Job in the project's queue, waiting or running."""

    name: str
    uid: str


@dataclass(frozen=True)
class NonCompliantPod:
    """A pod that the admission policies would refuse if it were created now, with the reason."""

    name: str
    why: str


def labels(client: Client, namespace: str) -> dict[str, str] | None:
    """Return the namespace's labels; None if it does not exist or is being deleted."""
    raw = client.get(Ref("Namespace", "", namespace))
    if raw is None or "deletionTimestamp" in raw["metadata"]:
        return None
    return dict(raw["metadata"].get("labels", {}))


def queued_jobs(client: Client, namespace: str) -> list[QueuedJob]:
    """Return the Jobs with the queue label that have not finished."""
    jobs = _items(client, JOBS.format(namespace), labelSelector=names.QUEUE_NAME)
    return [QueuedJob(job["metadata"]["name"], job["metadata"]["uid"]) for job in jobs if not _has_finished(job)]


def job_of_uid(client: Client, namespace: str, uid: str) -> str | None:
    """Return the name of the Job with this uid; None if it does not exist or is being deleted."""
    metadata = (job["metadata"] for job in _items(client, JOBS.format(namespace)))
    return next((m["name"] for m in metadata if m["uid"] == uid and "deletionTimestamp" not in m), None)


def end_job(client: Client, namespace: str, job: QueuedJob) -> None:
    """Delete the Job with its pods if it still has this uid; one that is gone already is no error."""
    client.delete_at(f"{JOBS.format(namespace)}/{job.name}", job.uid)


def non_compliant_pods(client: Client, namespace: str) -> list[NonCompliantPod]:
    """Return unfinished pods that use GPUs without an allocation and are not of a queued Job."""
    queued = {job["metadata"]["uid"] for job in _items(client, JOBS.format(namespace), labelSelector=names.QUEUE_NAME)}
    pods = []
    for pod in _items(client, PODS.format(namespace)):
        owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
        if names.ALLOCATION in pod["metadata"].get("labels", {}) or owners & queued:
            continue
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and (reason := _violation(pod["spec"])):
            pods.append(NonCompliantPod(pod["metadata"]["name"], reason))
    return pods


def _violation(spec: dict[str, Any]) -> str:
    gpus = ", ".join(f"{amount} {resource}" for resource, amount in sorted(gpu_requests(spec).items()))
    if gpus:
        return f"asks for {gpus} without an allocation"
    claims = ", ".join(claim["name"] for claim in spec.get("resourceClaims", ()))
    return f"names the resource claim {claims} without an allocation" if claims else ""


def _has_finished(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def _items(client: Client, path: str, **query: str) -> Iterator[dict[str, Any]]:
    token = ""
    while True:
        page = client.json("GET", path, query={"limit": PAGE, **query, **({"continue": token} if token else {})})
        yield from page.get("items") or ()
        if not (token := page["metadata"].get("continue", "")):
            return
