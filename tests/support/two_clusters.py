"""Two clusters with the same node names, namespaces and allocation names, for tests that must not mix them."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from allocations.cluster.kinds import KINDS
from allocations.models import Allocation, MirrorObject
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.tenants.project_options import ProjectOptions
from quotas.catalog.models import Offering
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import allocate, fleet
from tests.support.observed import T0
from tests.support.queued import GPU

FAR = "far"
BOTH = (LOCAL, FAR)
NAMESPACE = "vision-train"


@dataclass(frozen=True)
class Twin:
    """A cluster's fleet, its project in the namespace, and an allocation named train there."""

    project: Project
    row: Allocation
    flavors: dict[str, str]

    def offering(self, key: str) -> Offering:
        flavor, _, slice_ = key.partition("/")
        return Offering.objects.get(key=f"{self.flavors[flavor]}/{slice_}")


def make_twins(team: Team, project: Project, member: User) -> dict[str, Twin]:
    """Create a fleet, a project and an allocation in each cluster; return them by cluster."""
    make_cluster(FAR)
    far = tenants.create_project(
        SYSTEM, team, "vision-far", "Far away", ProjectOptions(cluster=FAR, namespace=NAMESPACE)
    )
    twins = {}
    for slug, home in ((LOCAL, project), (FAR, far)):
        cluster = fleet(team, slug=slug)
        flavors = {flavor.name.split("-")[0]: flavor.name for flavor in cluster.flavors.all()}
        row = allocate(member, home, f"{flavors['h100']}/whole", name="train")
        twins[slug] = Twin(home, row, flavors)
    WorkItem.objects.all().delete()
    return twins


def due() -> set[str]:
    """Return the enqueued targets."""
    return set(WorkItem.objects.values_list("target", flat=True))


def slots() -> set[str]:
    """Return the slots of open intervals."""
    return set(UsageInterval.objects.filter(end=None).values_list("slot", flat=True))


def mirrored(cluster: str, kind: str, name: str, *, allocation: str = "", deleting: bool = False, **facts: Any) -> None:
    MirrorObject.objects.create(
        cluster_id=cluster,
        kind=kind,
        namespace=NAMESPACE if KINDS[kind].namespaced else "",
        name=name,
        uid=str(uuid4()),
        resource_version=7,
        allocation=allocation,
        deleting=deleting,
        facts=facts,
        seen_at=T0,
    )


def workload(cluster: str, uid: str, flavor: str) -> None:
    """Mirror a tenant's Job named train, with two GPUs of the flavor reserved in the team's queue."""
    mirrored(
        cluster,
        "Workload",
        "job-train",
        job={"name": "train", "uid": uid},
        created_at=T0.isoformat(),
        conditions={"QuotaReserved": {"status": "True", "at": T0.isoformat(), "reason": "", "message": ""}},
        cluster_queue="team-vision",
        usage={flavor: {GPU: 2}},
        gpu_requests={GPU: 2},
        priority=0,
        record="",
    )


def pod(cluster: str, job: str) -> None:
    bound: dict[str, Any] = {"node": "l40s-0", "gpus": {GPU: 2}, "phase": "Running", "scheduled_at": T0.isoformat()}
    mirrored(cluster, "Pod", "train-0", job=job, **bound)
