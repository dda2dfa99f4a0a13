"""Ends use beyond a lease, with an event on the pods and an entry in the audit log and an allocation's timeline.

- Allocation: its newest pods are deleted until the rest is within the lease; its hold quota keeps new ones out.
- Queued Job: it is deactivated in Kueue, which suspends it; if that does not help, it is deleted, and then its pods.
- Claim without a lease: the pods that use it are deleted, unless a live lease reserves some of its devices.
- Pod of neither: it is deleted.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import structlog

from allocations.cluster import events, namespaces
from allocations.cluster.client import Client
from allocations.cluster.kinds import KINDS
from allocations.cluster.namespaces import QueuedJob
from allocations.cluster.projectors.pod_requests import gpu_requests
from allocations.domain.objects import Ref
from allocations.lifecycle import transitions
from allocations.lifecycle.lease_excess import Excess, HolderKind
from allocations.models import Allocation, LeaseExcess, MirrorObject
from portal.audit.entries import audit
from portal.tenants.models import Project

log = structlog.get_logger(__name__)
REASON = "OverLease"
TARGET_LENGTH = 250
Raw = dict[str, Any]


def end(client: Client, sighting: LeaseExcess, excess: Excess) -> bool:
    """Perform the next step against a confirmed excess; return whether it ended anything.

    In an adopted namespace only the excess of an allocation is ended; any other is reported once, since it may be older
    than the adoption.

    Raises ClusterUnavailable, ClusterRefused.
    """
    projects = Project.objects.select_related("team")
    project = projects.get(cluster=sighting.cluster_id, namespace=sighting.namespace)
    is_reported = sighting.actions > 0
    if project.adopted and excess.holder.kind is not HolderKind.ALLOCATION:
        if not is_reported:
            _report(client, sighting, excess, project, "Nothing was ended: the namespace is an adopted one.")
        return False
    excess = _with_users(client, excess)
    end_step = _end_job if excess.holder.kind is HolderKind.JOB else _end_pods
    ended = end_step(client, sighting, excess)
    if ended or not is_reported:
        _report(client, sighting, excess, project, ended or "Nothing of it can be ended that is not ending already.")
    return bool(ended)


def _end_pods(client: Client, sighting: LeaseExcess, excess: Excess) -> str:
    """Delete pods until the rest is within the lease, the newest first; return the sentence that says so, or "".

    Devices of a claim are not counted by pod: all pods that use it are deleted, since Kubernetes deallocates a claim
    when its last pod is gone; none, if a lease reserves some of its devices.
    """
    if excess.claims and excess.reserved:
        return ""
    live = [pod for ref in excess.pods if (pod := client.get(ref)) is not None]
    pods = live if excess.claims else _newest_beyond_lease(excess, live)
    deleted = [pod["metadata"] for pod in pods if not _is_ending(pod)]
    for pod in deleted:
        client.delete(Ref("Pod", sighting.namespace, pod["name"]), pod["uid"])
    return f"Deleted: pods {', '.join(pod['name'] for pod in deleted)}." if deleted else ""


def _newest_beyond_lease(excess: Excess, pods: Iterable[Raw]) -> list[Raw]:
    """Return the newest pods that use the resource, as many as bring the rest within the lease."""
    surplus, newest = excess.used - excess.reserved, []
    for pod in sorted(pods, key=_age, reverse=True):
        if surplus > 0 and (amount := _amount(pod, excess.resource)):
            surplus -= amount
            newest.append(pod)
    return newest


def _age(pod: Raw) -> tuple[bool, str, str]:
    """Return a sort key: by age, and pods that are terminating already count as the newest."""
    return _is_ending(pod), pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _is_ending(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _amount(pod: Raw, resource: str) -> int:
    return gpu_requests(pod.get("spec", {})).get(resource, 0)


def _end_job(client: Client, sighting: LeaseExcess, excess: Excess) -> str:
    """Deactivate the Job's Workload; if that was done, or it has finished, delete the Job, and then its pods.

    Return the sentence that says so; "" while all pods are terminating (on a lost node, for example): the Job creates
    no others before they are gone.
    """
    namespace = sighting.namespace
    if not excess.pods:
        return ""
    if (workload := _active_workload(client, sighting)) is not None:
        path = KINDS["Workload"].path(namespace, workload)
        client.json("PATCH", path, body={"spec": {"active": False}}, content_type="application/merge-patch+json")
        return f"Deactivated: Workload {workload}, so that Kueue suspends the Job."
    if (name := namespaces.job_of_uid(client, namespace, sighting.holder)) is not None:
        namespaces.end_job(client, namespace, QueuedJob(name, sighting.holder))
        return f"Deleted: Job {name}."
    return _end_pods(client, sighting, excess)


def _active_workload(client: Client, sighting: LeaseExcess) -> str | None:
    """Return the name of the Job's Workload if it can still be deactivated."""
    rows = MirrorObject.objects.filter(cluster=sighting.cluster_id, kind="Workload", namespace=sighting.namespace)
    name = rows.filter(facts__job__uid=sighting.holder).values_list("name", flat=True).first()
    live = client.get(Ref("Workload", sighting.namespace, name)) if name else None
    if live is None or live["spec"].get("active") is False:
        return None
    conditions = live.get("status", {}).get("conditions", ())
    return None if any(c["type"] == "Finished" and c["status"] == "True" for c in conditions) else name


def _with_users(client: Client, excess: Excess) -> Excess:
    """Return the excess with the pods that use its claims now."""
    live = [claim for ref in excess.claims if (claim := client.get(ref)) is not None]
    users = [user for claim in live for user in claim.get("status", {}).get("reservedFor", [])]
    pods = {Ref("Pod", excess.holder.namespace, user["name"]): None for user in users if user.get("resource") == "pods"}
    return replace(excess, pods=(*excess.pods, *pods))


def _report(client: Client, sighting: LeaseExcess, excess: Excess, project: Project, ended: str) -> None:
    """Write the event, the timeline and the audit entry of a step."""
    sighting.actions += 1
    sighting.save(update_fields=["actions"])
    message = f"{excess.sentence} {ended}"
    holder = f"{sighting.holder_kind}/{sighting.holder}"
    log.error("lease.ended", holder=holder, namespace=sighting.namespace, message=message)
    for pod in (*excess.pods, *excess.overdue_pods):
        events.warn(client, pod, REASON, message)
    row = Allocation.objects.filter(pk=sighting.holder).first() if excess.holder.kind is HolderKind.ALLOCATION else None
    if row is not None:
        transitions.append(row, "over_lease", actor="portal", reason="over_lease", message=message)
    audit(
        "system",
        f"{sighting.holder_kind}.over_lease",
        f"{project.slug}/{sighting.name}"[:TARGET_LENGTH],
        team=project.team.slug,
        project=project.slug,
        before={"used": excess.used, "reserved": excess.reserved, "resource": excess.resource},
        after={"message": message},
    )
