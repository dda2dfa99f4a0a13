"""What stands in a namespace, read from the API server itself, since the mirror has only what is the portal's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allocations.cluster import names
from allocations.cluster.client import Client
from allocations.cluster.projectors import gpu_requests
from allocations.domain.objects import Ref

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
PAGE = 500


@dataclass(frozen=True)
class QueuedJob:
    """A tenant's own Job that waits or runs by the project's queue."""

    name: str
    uid: str


@dataclass(frozen=True)
class Ungated:
    """A pod that the guard would refuse, were it made anew, and why."""

    name: str
    why: str


def labels(client: Client, namespace: str) -> dict[str, str] | None:
    """The namespace's labels; None where there is no such namespace, or it is on its way out."""
    found = client.get(Ref("Namespace", "", namespace))
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    return dict(found["metadata"].get("labels", {}))


def queued_jobs(client: Client, namespace: str) -> list[QueuedJob]:
    """Jobs with the queue label that have not finished."""
    found = _items(client, JOBS.format(namespace), labelSelector=names.QUEUE_NAME)
    return [QueuedJob(job["metadata"]["name"], job["metadata"]["uid"]) for job in found if not _has_finished(job)]


def job_of_uid(client: Client, namespace: str, uid: str) -> str | None:
    """Name of the Job with this uid; None where there is none, or it is being deleted."""
    found = (job["metadata"] for job in _items(client, JOBS.format(namespace)))
    return next((m["name"] for m in found if m["uid"] == uid and "deletionTimestamp" not in m), None)


def end_job(client: Client, namespace: str, job: QueuedJob) -> None:
    """Delete this very Job with its pods; already gone is fine."""
    client.delete_at(f"{JOBS.format(namespace)}/{job.name}", job.uid)


def ungated(client: Client, namespace: str) -> list[Ungated]:
    """Running or waiting pods that hold GPUs past the portal. Pods of queued Jobs do not."""
    queued = {job["metadata"]["uid"] for job in _items(client, JOBS.format(namespace), labelSelector=names.QUEUE_NAME)}
    found = []
    for pod in _items(client, PODS.format(namespace)):
        owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
        if names.ALLOCATION in pod["metadata"].get("labels", {}) or owners & queued:
            continue
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and (why := _why(pod["spec"])):
            found.append(Ungated(pod["metadata"]["name"], why))
    return found


def _why(spec: dict[str, Any]) -> str:
    gpus = ", ".join(f"{amount} {resource}" for resource, amount in sorted(gpu_requests(spec).items()))
    if gpus:
        return f"asks for {gpus} without an allocation"
    claims = ", ".join(claim["name"] for claim in spec.get("resourceClaims", ()))
    return f"names the resource claim {claims} without an allocation" if claims else ""


def _has_finished(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def _items(client: Client, path: str, **query: str) -> Iterator[dict[str, Any]]:
    more = ""
    while True:
        page = client.json("GET", path, query={"limit": PAGE, **query, **({"continue": more} if more else {})})
        yield from page.get("items") or ()
        if not (more := page["metadata"].get("continue", "")):
            return
