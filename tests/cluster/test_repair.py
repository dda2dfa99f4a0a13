"""Manual changes of the portal's objects are reverted, and the ledger records the truth about them."""

from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.cluster.names import hold_slot
from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation
from allocations.reconcile.allocation import reconcile_allocation
from portal.core import clock
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Flavor
from quotas.limits import services as limits
from tests.support.cluster.allocations import ended, held, intervals, phase, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.failed_starts import first_failure, start_deadline
from tests.support.cluster.hardware import claim
from tests.support.cluster.tenants import wait_for_members
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster

SHARED = (
    "gpuproject/gpu-portal",
    "resourcequota/gpu-portal-objects",
    "resourcequota/gpu-portal-other-pods",
    "limitrange/gpu-portal",
    "localqueue/gpu",
    "networkpolicy/gpu-portal-ingress",
    "networkpolicy/gpu-portal-egress",
    "rolebinding/gpu-portal-tenant",
)
PLATFORM = (
    "clusterqueue/team-language",
    "priorityclass/gpu-portal-hold-slot.249",
    "cohort/dept-research",
    "flowschema/gpu-portal-projects",
    "flowschema/gpu-portal-team-language",
    "prioritylevelconfiguration/gpu-portal-team-language",
    "serviceaccount/person-language-lead",
)


def uid(admin: ApiClient, name: str, namespace: str = "") -> str:
    """Return the uid of ``kind/name``, or an empty text if there is none."""
    kind, _, own_name = name.partition("/")
    return str(admin.find(kind, own_name, namespace).get("metadata", {}).get("uid", ""))


def deleted_and_made_again(admin: ApiClient, name: str, namespace: str = "") -> None:
    """Delete the object; return once there is another one."""
    before, (kind, _, own_name) = eventually(lambda: uid(admin, name, namespace)), name.partition("/")
    admin.delete(kind, own_name, namespace)
    eventually(lambda: uid(admin, name, namespace) not in ("", before))


@pytest.mark.parametrize("offering", ["h100/whole", "l40s/whole"])
def test_what_is_held_stays_when_its_flavor_is_told_apart_anew(
    offering: str, project: Project, member: User, admin: ApiClient
) -> None:
    row = held(member, project, offering)
    of_row = f"gpu-portal.io/allocation={row.name}"

    def uids() -> list[str]:
        found = admin.objects("workloads,resourceclaims,pods", project.namespace, labels=of_row)
        return [one["metadata"]["uid"] for one in found]

    before = uids()
    flavors = Flavor.objects.filter(name=row.offering.flavor.name)
    selector = flavors.get().node_selector
    flavors.update(node_selector={**selector, "kubernetes.io/os": "linux"})
    try:
        reconcile_allocation(str(row.pk), connect(LOCAL))
        assert uids() == before
        assert phase(row) == Phase.ACTIVE
    finally:
        flavors.update(node_selector=selector)
        workqueue.enqueue(
            targets.platform(LOCAL), targets.project(LOCAL, project.slug), targets.allocation(LOCAL, row.pk)
        )


@pytest.mark.parametrize("name", SHARED)
def test_a_deleted_object_of_a_namespace_is_made_again(name: str, project: Project, admin: ApiClient) -> None:
    deleted_and_made_again(admin, name, project.namespace)


@pytest.mark.parametrize("name", PLATFORM)
def test_a_deleted_object_of_the_platform_is_made_again(name: str, admin: ApiClient) -> None:
    deleted_and_made_again(admin, name, "gpu-portal-people" if name.startswith("serviceaccount") else "")


def test_a_hold_quota_that_nobody_uses_is_made_again_at_zero(project: Project, member: User, admin: ApiClient) -> None:
    name = hold_slot(ended(member, held(member, project, "l40s/whole")).number)
    deleted_and_made_again(admin, f"resourcequota/{name}", project.namespace)
    assert set(admin.get("resourcequota", name, project.namespace)["spec"]["hard"].values()) == {"0"}


def test_an_edited_quota_is_put_right(project: Project, member: User, admin: ApiClient) -> None:
    row = ended(member, held(member, project, "l40s/whole"))
    quota = ("resourcequota", hold_slot(row.number), project.namespace)
    admin.patch(*quota, {"spec": {"hard": {"requests.nvidia.com/gpu": "7"}}})
    eventually(lambda: admin.get(*quota)["spec"]["hard"]["requests.nvidia.com/gpu"] == "0")


def test_a_quota_that_the_portal_changed_and_does_not_remember_is_put_right(
    project: Project, member: User, admin: ApiClient
) -> None:
    """As after the restore of a backup: the owner of the fields is the same, only their content differs."""
    row = ended(member, held(member, project, "l40s/whole"))
    quota = ("resourcequota", hold_slot(row.number), project.namespace)
    live = admin.get(*quota)
    metadata = {key: live["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    hard = {**live["spec"]["hard"], "requests.nvidia.com/gpu": "7"}
    connect(LOCAL).apply({**live, "metadata": metadata, "spec": {**live["spec"], "hard": hard}, "status": {}})
    eventually(lambda: admin.get(*quota)["spec"]["hard"]["requests.nvidia.com/gpu"] == "0")


def test_an_edited_guard_is_put_right(project: Project, admin: ApiClient) -> None:
    guard = ("gpuproject", "gpu-portal", project.namespace)
    forged = {"spec": {"allocations": {"forged": {"mode": "device-plugin", "resource": "nvidia.com/gpu", "count": 9}}}}
    admin.patch(*guard, forged)
    eventually(lambda: admin.get(*guard)["spec"]["allocations"] == {})


def test_a_deleted_lease_comes_back_and_the_hold_stays(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole")
    deleted_and_made_again(admin, f"workload/{row.name}-lease", project.namespace)

    def conditions() -> dict[str, str]:
        lease = admin.get("workload", f"{row.name}-lease", project.namespace)
        return {one["type"]: one["status"] for one in lease.get("status", {}).get("conditions", ())}

    eventually(lambda: conditions().get("Admitted") == "True")
    wait_for(row, Phase.ACTIVE)
    assert len(intervals(row)) == 1
    assert intervals(row)[0].end is None


def test_a_deleted_holder_is_made_again(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole")
    deleted_and_made_again(admin, f"pod/{row.name}-holder", project.namespace)
    wait_for(row, Phase.ACTIVE)
    open_now = [i for i in intervals(row) if i.end is None]
    assert len(open_now) == 1


def test_a_claim_deleted_in_use_ends_its_pods_and_comes_back(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole")
    deleted_and_made_again(admin, f"resourceclaim/{row.name}", project.namespace)
    eventually(lambda: row.transitions.filter(reason="claim_deleted").exists(), within_s=60)
    eventually(lambda: row.transitions.filter(to_phase="active", type="phase").count() == 2, within_s=60)
    first, second = intervals(row)
    assert first.end is not None
    assert first.end <= second.start
    assert second.end is None


@pytest.mark.own_project
def test_deleting_the_namespace_fails_what_it_held_and_the_project_gets_a_new_one(
    project: Project, member: User, admin: ApiClient
) -> None:
    dra, plugin = held(member, project, "h100/whole"), held(member, project, "l40s/whole")
    before = uid(admin, f"namespace/{project.namespace}")
    admin.delete("namespace", project.namespace)
    for row in (dra, plugin):
        wait_for(row, Phase.ENDED, within_s=60)
        assert (row.outcome, row.reason) == (Outcome.FAILED, "namespace_deleted")
        assert all(interval.end for interval in intervals(row))
    eventually(lambda: uid(admin, f"namespace/{project.namespace}") not in ("", before))
    wait_for_members(admin, project)
    held(member, project, "l40s/whole")


@pytest.mark.own_project
def test_a_lease_without_a_row_becomes_one_again(project: Project, member: User) -> None:
    """Its limit counts it again, too: the restored database is older than the request."""
    row = held(member, project, "h100/whole")
    id_, name = row.pk, row.name
    opened = intervals(row)[0].key
    limit = limits.set_limit(SYSTEM, project, row.offering, 2)
    assert limit.units_used == 0
    row.delete()
    workqueue.enqueue(targets.adoption(LOCAL))
    eventually(lambda: Allocation.objects.filter(pk=id_).exists())
    again = Allocation.objects.get(pk=id_)
    assert again.recovered
    assert (again.name, again.count, again.requested_by) == (name, 1, member)
    wait_for(again, Phase.ACTIVE)
    assert [i.key for i in intervals(again)] == [opened]
    limit.refresh_from_db()
    assert limit.units_used == 1


def test_somebody_elses_claim_that_has_the_name_stays_and_the_start_says_so(
    project: Project, member: User, admin: ApiClient
) -> None:
    before = admin.created(claim("taken", "mig.nvidia.com"), project.namespace)["metadata"]["uid"]
    with start_deadline("h100"):
        row = request_slices(member, project, "h100/whole", name="taken")
        failed = first_failure(row)
    assert admin.delete("resourceclaim", "taken", project.namespace, preconditions={"uid": before}).status == 200
    assert failed.reason == "start_refused"
    assert f"A ResourceClaim named taken in {project.namespace} is in the way" in failed.message
    wait_for(row, Phase.ACTIVE)


def test_nothing_is_written_for_what_is_as_it_should_be(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole")
    eventually(lambda: not due_now(f"local/allocation:{row.pk}", f"local/project:{project.slug}"))
    before = own_writes(admin, project)
    workqueue.enqueue(targets.allocation(LOCAL, row.pk), targets.project(LOCAL, project.slug))
    eventually(lambda: not due_now(f"local/allocation:{row.pk}", f"local/project:{project.slug}"))
    assert own_writes(admin, project) == before


def own_writes(admin: ApiClient, project: Project) -> dict[str, list[Any]]:
    """Return what the portal last wrote of each object, and when. Kubernetes and Kueue write their statuses, too."""
    kinds = "workloads,resourceclaims,pods,gpuprojects,resourcequotas"
    return {
        one["metadata"]["uid"]: [
            entry for entry in one["metadata"]["managedFields"] if entry["manager"] == names.FIELD_MANAGER
        ]
        for one in admin.objects(kinds, project.namespace)
    }


def due_now(*targets: str) -> bool:
    return WorkItem.objects.filter(target__in=targets, due_at__lte=clock.now()).exists()


@pytest.mark.own_project
def test_a_queued_request_waits_for_its_namespace(project: Project, member: User, admin: ApiClient) -> None:
    """Requested while the namespace is being deleted: it is held once the namespace exists again."""
    admin.delete("namespace", project.namespace)
    row = request_slices(member, project, "l40s/whole")
    wait_for(row, Phase.ACTIVE, within_s=60)
