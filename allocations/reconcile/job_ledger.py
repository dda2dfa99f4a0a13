"""From tenants' own queued Jobs to the ledger: each pod's GPUs, from its binding to a node until it is done or gone.

A Job's quota begins with its admission, its bill only with evidence: a pod that is bound takes GPUs of its node until
the cluster shows it finished or gone. The interval's ``allocation`` is the Job's uid, its offering that of the node's
flavor for the resource. Kubernetes names no device, and no object says who made the Job: both stay empty.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from django.conf import settings

from allocations.cluster.kinds import Observation
from allocations.models import MirrorObject
from allocations.reconcile.wants import FINISHED
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
            _begin(new, facts["job"], name=new.ref.name)
    elif new.ref.kind == "Workload" and not new.gone and facts.get("job"):
        _begin(new, facts["job"]["uid"])


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


def _begin(new: Observation, job: str, **only: str) -> None:
    """Open what the Job's pods hold, if it is a queued one of a project."""
    namespace = new.ref.namespace
    rows = MirrorObject.objects.filter(kind="Pod", namespace=namespace, allocation="", facts__job=job, **only)
    pods = [pod for pod in rows if pod.facts["node"] and pod.facts["gpus"] and not _is_done(pod.facts)]
    if not pods:
        return
    workloads = MirrorObject.objects.filter(kind="Workload", namespace=namespace, allocation="", facts__job__uid=job)
    project = Project.objects.filter(namespace=namespace).select_related("team__department").first()
    workload = workloads.first()
    if workload is None or project is None:
        return
    offerings = _offerings({pod.facts["node"] for pod in pods})
    for pod in pods:
        watched = new.live and new.ref.kind == "Pod" and new.uid == pod.uid
        for resource, amount in sorted(pod.facts["gpus"].items()):
            offering = offerings.get((pod.facts["node"], resource))
            if offering is None:
                log.warning("job.unknown_offering", namespace=namespace, pod=pod.name, resource=resource)
                continue
            metering.open_interval(
                uuid5(NAMESPACE_URL, f"gpu-portal/usage/{job}/{pod.uid}/{resource}"),
                UUID(job),
                f"{_slot(pod.uid)}{resource}",
                new.at if watched else _bound_at(pod, new.at),
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
