"""Ends use beyond a lease: the excess pods, the queued Job, or pods that belong to no allocation or Job.

Each act has an event on the pods, an entry in the audit log and, for an allocation, in its timeline. Of an allocation
the newest pods end, so that the rest may stay: its hold quota keeps successors out. A queued Job ends as a whole: it is
deactivated in Kueue, which suspends it; if that does not help it is deleted, and then its pods. Pods that use a claim
without a lease end, unless a live lease reserves some of its devices.
"""

from dataclasses import replace
from typing import Any

import structlog

from allocations.cluster import events, namespaces
from allocations.cluster.client import Client
from allocations.cluster.kinds import KINDS
from allocations.cluster.namespaces import QueuedJob
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
    """The next step against a confirmed excess; whether it ended anything.

    Where guards only warn, and for what may have stood in an adopted namespace before, nothing is ended: it is told
    only. Raises ClusterUnavailable, ClusterRefused.
    """
    found = Project.objects.select_related("team")
    project = found.get(cluster=sighting.cluster_id, namespace=sighting.namespace)
    is_told = sighting.actions > 0
    if project.adopted and excess.holder.kind is not HolderKind.ALLOCATION:
        if not is_told:
            _tell(client, sighting, excess, project, "Nothing was ended: the namespace is an adopted one.")
        return False
    excess = _with_users(client, excess)
    ended = {
        HolderKind.ALLOCATION: _end_users if excess.claims else _end_pods,
        HolderKind.POD: _end_pods,
        HolderKind.JOB: _end_job,
        HolderKind.CLAIM: _end_users,
    }[excess.holder.kind](client, sighting, excess)
    if ended or not is_told:
        _tell(client, sighting, excess, project, ended or "Nothing of it can be ended that is not ending already.")
    return bool(ended)


def _end_pods(client: Client, sighting: LeaseExcess, excess: Excess) -> str:
    """Delete the newest pods until the rest is within the lease."""
    live = [pod for ref in excess.pods if (pod := client.get(ref)) is not None]
    newest = sorted(live, key=_age, reverse=True)
    too_many, going = excess.used - excess.reserved, []
    for pod in newest:
        if too_many <= 0:
            break
        amount = _amount(pod, excess.resource)
        too_many -= amount
        if not amount or _is_ending(pod):
            continue
        client.delete(Ref("Pod", sighting.namespace, pod["metadata"]["name"]), pod["metadata"]["uid"])
        going.append(pod["metadata"]["name"])
    return f"Deleted: pods {', '.join(going)}." if going else ""


def _age(pod: Raw) -> tuple[bool, str, str]:
    """In its order those that are ending already, of themselves or by their owner, are the newest."""
    return _is_ending(pod), pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _is_ending(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _amount(pod: Raw, resource: str) -> int:
    facts = KINDS["Pod"].projector(pod) or {}
    return int(facts.get("gpus", {}).get(resource, 0))


def _end_job(client: Client, sighting: LeaseExcess, excess: Excess) -> str:
    """Deactivate the Job's Workload; where that is done, or it has finished, delete the Job; and then its pods. Where
    all of them are ending, on a lost node for example, the Job makes no other before they have ended: it waits."""
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
    """Name of the Job's Workload, if it can still be deactivated."""
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


def _end_users(client: Client, sighting: LeaseExcess, excess: Excess) -> str:
    """Delete the pods that use the claims; Kubernetes deallocates a claim when the last of them is gone."""
    if excess.reserved:
        return ""
    going = []
    for ref in excess.pods:
        pod = client.get(ref)
        if pod is None or _is_ending(pod):
            continue
        client.delete(ref, pod["metadata"]["uid"])
        going.append(ref.name)
    return f"Deleted: pods {', '.join(going)}." if going else ""


def _tell(client: Client, sighting: LeaseExcess, excess: Excess, project: Project, ended: str) -> None:
    sighting.actions += 1
    sighting.save(update_fields=["actions"])
    message = f"{excess.sentence} {ended}"
    log.error("lease.ended", holder=f"{sighting.holder_kind}/{sighting.holder}", message=message)
    for pod in (*excess.pods, *excess.late):
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
