"""From tenants' own queued Jobs to the ledger: each pod's GPUs, from its binding to a node until it is done or gone.

A Job's quota begins with its admission, its bill only with evidence: a pod that is bound takes GPUs of its node until
the cluster shows it finished or gone. The interval's ``allocation`` is the Job's uid, its offering that of the node's
flavor for the resource. Kubernetes names no device, and no object says who made the Job: both stay empty.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from django.conf import settings
from django.db import transaction

from allocations.cluster.kinds import Observation
from allocations.models import MirrorObject
from allocations.reconcile.wants import FINISHED
from portal.core import clock
from portal.tenants.models import Project
from quotas.catalog.models import Node, Offering
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval

log = structlog.get_logger(__name__)


def record(new: Observation, old: MirrorObject | None) -> None:
    """Bring the ledger along with one change, already in the mirror: of a pod, or of the workload that makes its Job
    known as queued (whichever of the two is seen last)."""
    facts = new.facts or {}
    if new.ref.kind == "Pod":
        if old is not None and old.facts.get("job") and (new.gone or new.uid != old.uid or _is_done(facts)):
            _end(old.uid, new)
        if not new.gone and facts.get("job"):
            was_bound = old is not None and old.uid == new.uid and bool(old.facts.get("node"))
            _begin(new.ref.namespace, facts["job"], at=new.at, watched=new.live and not was_bound, name=new.ref.name)
    elif new.ref.kind == "Workload" and not new.gone and facts.get("job"):
        _begin(new.ref.namespace, facts["job"]["uid"], at=new.at)


def open_missing(metered: Collection[str]) -> bool:
    """Open what the ledger could not yet, since the flavor of the pod's node was not known when it was bound; whether
    anything was. ``metered``: uids of the pods that it has.

    Pods are locked as the watcher's own change of them is: one that ends meanwhile is either seen ended here, or its
    interval is seen there.
    """
    pods = MirrorObject.objects.filter(kind="Pod", allocation="", facts__has_key="job").exclude(facts__node="")
    jobs = {(pod.namespace, pod.facts["job"]) for pod in pods if pod.uid not in metered and not _is_done(pod.facts)}
    queued = MirrorObject.objects.filter(kind="Workload", facts__job__uid__in=[job for _, job in jobs])
    opened = 0
    for namespace, job in queued.values_list("namespace", "facts__job__uid").distinct():
        with transaction.atomic():
            opened += _begin(namespace, job, at=clock.now(), lock=True)
    return opened > 0


def metered_pods() -> set[str]:
    """Uids of the pods whose GPUs are in the ledger now: what they use is held, and no foreign use."""
    slots = UsageInterval.objects.filter(end=None, slot__startswith=_slot("")[:-1]).values_list("slot", flat=True)
    return {slot.split("/")[1].removeprefix("pod:") for slot in slots}


def _is_done(pod: Mapping[str, Any]) -> bool:
    return pod["phase"] in FINISHED


def _slot(pod: str) -> str:
    return f"{settings.CLUSTER_NAME}/pod:{pod}/"


def _end(pod: str, new: Observation) -> None:
    revision = "gone" if new.gone else str(new.resource_version)
    evidence = {"kind": "Pod", "name": new.ref.name, "resource_version": revision}
    for key in UsageInterval.objects.filter(end=None, slot__startswith=_slot(pod)).values_list("key", flat=True):
        metering.close_interval(key, new.at, evidence, estimated=not new.live)


def _begin(namespace: str, job: str, *, at: datetime, watched: bool = False, lock: bool = False, **only: str) -> int:
    """Open what the Job's pods hold and the ledger lacks, if it is a queued one of a project: from ``at`` where their
    binding was ``watched``, else from when the cluster says. Returns how many were opened."""
    rows = MirrorObject.objects.filter(kind="Pod", namespace=namespace, allocation="", facts__job=job, **only)
    rows = rows.select_for_update() if lock else rows
    there = [pod for pod in rows if pod.facts["node"] and pod.facts["gpus"] and not _is_done(pod.facts)]
    keys = {_key(job, pod, resource) for pod in there for resource in pod.facts["gpus"]}
    known = set(UsageInterval.objects.filter(key__in=keys).values_list("key", flat=True))
    pods = [pod for pod in there if not known.issuperset(_key(job, pod, each) for each in pod.facts["gpus"])]
    if not pods:
        return 0
    workloads = MirrorObject.objects.filter(kind="Workload", namespace=namespace, allocation="", facts__job__uid=job)
    project = Project.objects.filter(namespace=namespace).select_related("team__department").first()
    workload = workloads.first()
    if workload is None or project is None:
        return 0
    opened = 0
    offerings = _offerings({pod.facts["node"] for pod in pods})
    for pod in pods:
        for resource, amount in sorted(pod.facts["gpus"].items()):
            offering = offerings.get((pod.facts["node"], resource))
            if offering is None:
                log.warning("job.unknown_offering", namespace=namespace, pod=pod.name, resource=resource)
                continue
            metering.open_interval(
                _key(job, pod, resource),
                UUID(job),
                f"{_slot(pod.uid)}{resource}",
                at if watched else _bound_at(pod, at),
                _attribution(project, offering, pod.facts["node"]),
                amount,
                {
                    "kind": "Pod",
                    "name": pod.name,
                    "resource_version": str(pod.resource_version),
                    "job": workload.facts["job"]["name"],
                },
                estimated=not watched,
            )
            opened += 1
    return opened


def _key(job: str, pod: MirrorObject, resource: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"gpu-portal/usage/{job}/{pod.uid}/{resource}")


def _bound_at(pod: MirrorObject, otherwise: datetime) -> datetime:
    said = pod.facts.get("scheduled_at")
    return datetime.fromisoformat(said) if said else otherwise


def _offerings(nodes: Iterable[str]) -> dict[tuple[str, str], Offering]:
    """The offering of a device plugin's resource on each node."""
    found = Node.objects.filter(name__in=nodes, flavor__path="device-plugin").values_list("name", "flavor_id")
    rows = Offering.objects.filter(flavor__in={flavor for _, flavor in found}).select_related("flavor")
    by_flavor = {(row.flavor_id, row.resource): row for row in rows if row.resource}
    return {
        (node, resource): row for node, flavor in found for (of, resource), row in by_flavor.items() if of == flavor
    }


def _attribution(project: Project, offering: Offering, node: str) -> metering.Attribution:
    return metering.Attribution(
        offering=offering.key,
        flavor=offering.flavor.name,
        kind=offering.kind,
        gpu_share=offering.gpu_share,
        cluster=settings.CLUSTER_NAME,
        department=project.team.department.slug,
        team=project.team.slug,
        project=project.slug,
        member="",
        namespace=project.namespace,
        node=node,
    )
