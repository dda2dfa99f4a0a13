"""Use beyond a lease is ended, whatever its cause: on the real cluster, in ways that no guard prevents.

The portal's own account and Kubernetes' controllers are exempt from the guards, so what an administrator does in their
name represents an unknown gap.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allocations.cluster import names
from allocations.domain.phases import Phase
from allocations.models import Allocation, LeaseExcess, Transition
from deploy.local.runner import Local
from portal.core.models import AuditEntry
from portal.tenants.models import Project, User
from quotas.metering.models import UsageInterval
from tests.support.cluster.allocations import held, phase
from tests.support.cluster.api_client import PORTAL, ApiClient, Object
from tests.support.cluster.tenants import gpu_pod, person_of, queued_job, retry_refused
from tests.support.cluster.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.own_project]
CONTROLLER = "system:serviceaccount:kube-system:generic-garbage-collector"
GPU = "nvidia.com/gpu"
Smuggle = Callable[..., None]


@pytest.fixture(scope="module")
def portal(local: Local) -> ApiClient:
    return ApiClient(local.home, acting_as=PORTAL)


@pytest.fixture
def smuggle(project: Project, admin: ApiClient, portal: ApiClient) -> Smuggle:
    """Create a pod with a GPU past the guards, and wait until it runs."""

    def make(name: str, **metadata: Any) -> None:
        portal.created(gpu_pod(name, **metadata), project.namespace)
        eventually(lambda: "Running" in pods(admin, project).get(name, ""))

    return make


def pods(admin: ApiClient, project: Project) -> dict[str, str]:
    """Return the phase of each pod of the project that is not terminating."""
    found = admin.objects("pods", project.namespace)
    remaining = (pod for pod in found if "deletionTimestamp" not in pod["metadata"])
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in remaining}


def warnings(admin: ApiClient, project: Project, pod: str) -> list[str]:
    chosen = f"involvedObject.name={pod},reason=OverLease"
    return [event["message"] for event in admin.objects("events", project.namespace, fields=chosen)]


def sightings(project: Project) -> list[LeaseExcess]:
    return list(LeaseExcess.objects.filter(namespace=project.namespace).order_by("pk"))


def test_a_pod_of_no_lease_ends_with_an_event_and_an_entry_in_the_audit_log(
    project: Project, admin: ApiClient, smuggle: Smuggle
) -> None:
    smuggle("stowaway")
    eventually(lambda: "stowaway" not in pods(admin, project), within_s=60)
    (message,) = eventually(lambda: warnings(admin, project, "stowaway"))
    assert message.startswith("The pod stowaway has neither an allocation nor a queued Job, and uses 1 nvidia.com/gpu")
    entry = eventually(lambda: AuditEntry.objects.filter(project=project.slug, action="pod.over_lease").first())
    assert entry is not None
    assert entry.target == f"{project.slug}/stowaway"
    (sighting,) = sightings(project)
    assert sighting.confirmed_at is not None
    eventually(lambda: sightings(project)[0].over_at)


def test_of_an_allocation_the_newest_pods_go_until_the_rest_is_within_its_lease(
    project: Project, member: User, admin: ApiClient, smuggle: Smuggle
) -> None:
    row = held(member, project, "l40s/whole", 1)
    labels = {names.ALLOCATION: row.name}
    retry_refused(admin.created, plain_pod("mine", row), project.namespace)
    eventually(lambda: pods(admin, project).get("mine") == "Running")
    # A holder's label keeps the policies from giving it the class, so no quota counts it.
    smuggle("more", labels={**labels, names.HOLDER: "true"})
    eventually(lambda: "more" not in pods(admin, project), within_s=60)
    assert pods(admin, project) == {"mine": "Running"}
    messages = Transition.objects.filter(allocation=row, type="over_lease").values_list("message", flat=True)
    (sentence,) = eventually(lambda: list(messages.all()))
    assert f"Allocation {row.name} uses 2 nvidia.com/gpu where 1 are reserved." in sentence
    charged = UsageInterval.objects.filter(holder_id=row.pk).order_by("start")
    eventually(lambda: [(one.count, one.end is None) for one in charged.all()] == [(1, True), (1, False)])


def test_a_claim_of_no_lease_loses_its_pods_though_it_has_an_allocations_label(
    project: Project, member: User, admin: ApiClient, portal: ApiClient
) -> None:
    row = held(member, project, "h100/whole")
    own = admin.get("resourceclaim", row.name, project.namespace)
    claim = {
        **{key: own[key] for key in ("apiVersion", "kind", "spec")},
        "metadata": {"name": "second", "labels": {names.ALLOCATION: row.name}},
    }
    portal.created(claim, project.namespace)
    holder = admin.get("pod", f"{row.name}-holder", project.namespace)
    portal.created(pod_on_claim("sharer", "second", holder["spec"]), project.namespace)
    eventually(lambda: pods(admin, project).get("sharer") == "Running")
    eventually(lambda: "sharer" not in pods(admin, project), within_s=60)
    sentence = "The ResourceClaim second belongs to no allocation, and has 1 devices where 0 are reserved."
    assert eventually(lambda: warnings(admin, project, "sharer"))[0].startswith(sentence)
    ended = AuditEntry.objects.filter(project=project.slug, action="claim.over_lease")
    eventually(lambda: "Deleted: pods sharer." in str([entry.after for entry in ended.all()]))
    assert pods(admin, project) == {f"{row.name}-holder": "Running"}
    assert phase(row) == Phase.ACTIVE


def pod_on_claim(name: str, claim: str, like: Object) -> Object:
    """Return a pod that runs where ``like``, the spec of a pod, runs."""
    container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        **{key: like[key] for key in ("nodeSelector", "tolerations", "securityContext")},
        "containers": [{**container, "securityContext": like["containers"][0]["securityContext"]}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def plain_pod(name: str, row: Allocation) -> Object:
    pod = gpu_pod(name, labels={names.ALLOCATION: row.name})
    for field in ("tolerations", "nodeSelector"):
        del pod["spec"][field]
    return pod


def test_pods_of_a_queued_job_that_run_on_without_its_quota_end(
    local: Local, project: Project, member: User, admin: ApiClient, tmp_path: Path
) -> None:
    """A finalizer keeps the Job, and so its pods, when it is deleted; Kueue treats its Workload as orphaned."""
    tenant = person_of(local, tmp_path, member, project.namespace)
    tenant.created(queued_job("train"))
    eventually(lambda: "Running" in pods(admin, project).values())
    controller = ApiClient(local.home, acting_as=CONTROLLER)
    kept = {"metadata": {"finalizers": ["example.com/mine"]}}
    controller.patch("job", "train", project.namespace, kept)
    tenant.delete("job", "train")
    try:
        eventually(lambda: not pods(admin, project), within_s=60)
        sentence = "The Job train uses 1 nvidia.com/gpu where 0 are reserved."
        eventually(lambda: any(sentence in message for message in messages_of(project)))
    finally:
        controller.patch("job", "train", project.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: not UsageInterval.objects.filter(project=project.slug, end=None).exists())


def of_job(job: dict[str, Any]) -> dict[str, Any]:
    """Return metadata by which a pod counts as the Job's, for the portal and for the Job controller."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    return {"labels": job["spec"]["selector"]["matchLabels"], "ownerReferences": [{**owner, "controller": True}]}


def test_a_job_that_has_a_pod_too_many_is_deactivated_so_that_kueue_suspends_it(
    local: Local, project: Project, member: User, admin: ApiClient, smuggle: Smuggle, tmp_path: Path
) -> None:
    """Without completions, the Job controller leaves all running pods alone once one has succeeded. Kueue releases the
    quota of that one, so that one of two stays reserved.
    """
    tenant = person_of(local, tmp_path, member, project.namespace)
    job = queued_job("train")
    job["spec"]["parallelism"] = 2
    tenant.created(job)
    eventually(lambda: list(pods(admin, project).values()) == ["Running", "Running"])
    brief = {"metadata": {"annotations": {"gpu-portal.io/run-for": "1s"}}}
    admin.patch("pod", min(pods(admin, project)), project.namespace, brief)

    def workload() -> Object:
        [found] = admin.objects("workloads", project.namespace)
        return found

    eventually(lambda: [one["count"] for one in workload()["status"].get("reclaimablePods", ())] == [1])
    smuggle("more", **of_job(tenant.get("job", "train")))
    (message,) = eventually(lambda: messages_of(project), within_s=60)
    deactivated = f"Deactivated: Workload {workload()['metadata']['name']}, so that Kueue suspends the Job."
    assert message == f"The Job train uses 2 {GPU} where 1 are reserved. {deactivated}"
    assert workload()["spec"]["active"] is False
    assert message in eventually(lambda: warnings(admin, project, "more"))
    eventually(lambda: tenant.get("job", "train")["spec"]["suspend"])
    eventually(lambda: "Running" not in pods(admin, project).values())


def test_a_finished_job_that_has_a_pod_all_the_same_is_deleted_with_it(
    local: Local, project: Project, member: User, admin: ApiClient, smuggle: Smuggle, tmp_path: Path
) -> None:
    """The Job controller no longer handles a finished Job, and its Workload cannot be deactivated."""
    tenant = person_of(local, tmp_path, member, project.namespace)
    job = queued_job("train")
    job["spec"]["template"]["metadata"] = {"annotations": {"gpu-portal.io/run-for": "1s"}}
    tenant.created(job)
    eventually(lambda: tenant.get("job", "train")["status"].get("completionTime"))
    smuggle("more", **of_job(tenant.get("job", "train")))
    (message,) = eventually(lambda: messages_of(project), within_s=60)
    assert message == f"The Job train uses 1 {GPU} where 0 are reserved. Deleted: Job train."
    eventually(lambda: not admin.objects("jobs,pods", project.namespace))


def messages_of(project: Project) -> list[str]:
    entries = AuditEntry.objects.filter(project=project.slug, action="job.over_lease")
    return [entry.after["message"] for entry in entries if entry.after]


def test_what_was_tried_while_the_portal_was_down_is_ended_when_it_is_back(
    local: Local, project: Project, admin: ApiClient, smuggle: Smuggle
) -> None:
    local.stop("watcher")
    local.stop("worker")
    try:
        smuggle("nightly")
    finally:
        local.start("worker")
        local.start("watcher")
    eventually(lambda: "nightly" not in pods(admin, project), within_s=60)
    assert eventually(lambda: warnings(admin, project, "nightly"))


def test_pods_that_end_within_their_grace_are_no_excess(
    local: Local, project: Project, member: User, admin: ApiClient, tmp_path: Path
) -> None:
    """Kueue releases the quota of a deleted Job before its pods have ended, which takes a while."""
    job = queued_job("slow")
    job["spec"]["template"]["metadata"] = {"annotations": {"gpu-portal.io/ignore-sigterm": "true"}}
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 25
    tenant = person_of(local, tmp_path, member, project.namespace)
    open_intervals = UsageInterval.objects.filter(project=project.slug, end=None)
    tenant.created(job)
    eventually(lambda: "Running" in pods(admin, project).values())
    eventually(lambda: open_intervals.count() == 1)
    tenant.delete("job", "slow")
    eventually(lambda: not admin.objects("workloads", project.namespace))
    assert admin.objects("pods", project.namespace)
    assert open_intervals.count() == 1
    eventually(lambda: not admin.objects("pods", project.namespace))
    eventually(lambda: not open_intervals.exists())
    assert [one for one in sightings(project) if one.confirmed_at] == []


def test_a_job_whose_pods_have_only_not_ended_in_time_is_told_of_and_stays(
    local: Local, project: Project, member: User, admin: ApiClient, tmp_path: Path
) -> None:
    """As on a lost node: Kueue releases the quota, while it is unknown whether the pod has ended."""
    job = queued_job("stuck")
    job["spec"]["template"]["metadata"] = {"annotations": {"gpu-portal.io/stop-after": "30s"}}
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    tenant = person_of(local, tmp_path, member, project.namespace)
    tenant.created(job)
    eventually(lambda: "Running" in pods(admin, project).values())
    [workload] = admin.objects("workloads", project.namespace)
    admin.patch("workload", workload["metadata"]["name"], project.namespace, {"spec": {"active": False}})
    [pod] = admin.objects("pods", project.namespace)
    (message,) = eventually(lambda: messages_of(project), within_s=60)
    assert "ending already" in message
    assert warnings(admin, project, pod["metadata"]["name"]) == [message]
    assert tenant.get("job", "stuck")["spec"]["suspend"]
