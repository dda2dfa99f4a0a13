"""Tenants' own Jobs with the queue label, on the real Kueue and with a tenant's kubeconfig: queued, billed,
explained.
"""

import re
from datetime import timedelta

import pytest
from django.test import Client

from allocations.capacity.headroom import Availability
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.queues import queue
from allocations.queues.jobs import State
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.metering.models import UsageInterval
from tests.support.cluster.allocations import held
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.jobs import GPU, Submit, assert_charged_once, become
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster


def test_the_guides_job_runs_is_billed_for_its_pods_and_finishes(submit: Submit, project: Project) -> None:
    uid = submit("train", pods=2, run_for="8s")
    job = become(project, uid, State.RUNNING)
    assert (job.offering, job.gpus) == ("l40s/whole", 2)
    assert become(project, uid, State.FINISHED).message == "It has finished."
    of_pods = UsageInterval.objects.filter(holder_id=uid, end__isnull=False, unused=False)
    eventually(lambda: of_pods.count() == 2)
    assert [(row.count, row.project, row.member, row.estimated_end) for row in of_pods] == [
        (1, project.slug, "", False)
    ] * 2
    eventually(lambda: not UsageInterval.objects.filter(holder_id=uid, end=None).exists())
    assert_charged_once(uid)


def test_a_job_whose_pods_can_never_be_bound_is_charged_until_it_is_deleted(
    submit: Submit, project: Project, member: User, admin: ApiClient
) -> None:
    nowhere = {"nvidia.com/gpu.product": "NVIDIA-L40S", "kubernetes.io/hostname": "nowhere"}
    uid = submit("never", pods=2, nodeSelector=nowhere)
    become(project, uid, State.ADMITTED)
    api = client(member)

    def rated_hours() -> dict[str, str] | None:
        hours = api.get(f"/api/v1/jobs/{uid}").json()["gpu_hours"]
        return hours if float(hours["reserved"]) > 0 else None

    hours = eventually(rated_hours)
    assert hours and hours["used"] == "0.000000"
    browser = Client()
    browser.force_login(member)
    page = browser.get(f"/jobs/{uid}").content.decode()
    assert re.search(r"GPU-hours used by its pods</dt><dd[^>]*>0\.00<", page)
    admin.delete("job", "never", project.namespace)
    [row] = eventually(lambda: list(UsageInterval.objects.filter(holder_id=uid, end__isnull=False)))
    assert (row.count, row.unused, row.offering, row.estimated_start, row.estimated_end) == (
        *(2, True, "l40s/whole"),
        *(False, False),
    )
    assert not UsageInterval.objects.filter(holder_id=uid, end=None).exists()


def test_gpus_of_a_running_job_are_held_and_leave_less_to_get(
    submit: Submit, project: Project, vision: Team, admin: ApiClient
) -> None:
    nodes = admin.objects("nodes", labels="nvidia.com/gpu.product=NVIDIA-L40S")
    total = sum(int(node["status"]["allocatable"].get(GPU, 0)) for node in nodes)

    def counted() -> tuple[int, int, int]:
        found = CapacitySnapshot().capacity(Offering.objects.get(key="l40s/whole"))
        return (found.total, found.held, found.free)

    def can_get_now() -> int:
        return Availability([vision]).headroom(vision, Offering.objects.get(key="l40s/whole")).can_get_now

    # Pods of earlier tests may still be ending.
    eventually(lambda: counted() == (total, 0, total))
    available = can_get_now()
    uid = submit("train", pods=2)
    eventually(lambda: UsageInterval.objects.filter(holder_id=uid, end=None, unused=False).count() == 2)
    eventually(lambda: counted() == (total, 2, total - 2))
    eventually(lambda: can_get_now() == available - 2)


def test_what_does_not_fit_beside_holds_waits_with_its_place_and_what_is_ahead(
    submit: Submit, project: Project, member: User, vision: Team
) -> None:
    held(member, project, "l40s/whole", 4)
    first = become(project, submit("first"), State.QUEUED, "WaitingForQuota")
    # Kueue orders by creation, which Kubernetes notes to the second.
    eventually(lambda: clock.now() > first.created_at + timedelta(seconds=1))
    waiting = [first, become(project, submit("second"), State.QUEUED, "WaitingForQuota")]
    assert all(job.hint.startswith("Release what the team no longer needs") for job in waiting)
    eventually(lambda: {job.name: queue.position(job) for job in waiting} == {"first": (1, 2), "second": (2, 2)})
    body = client(member).get(f"/api/v1/queues/{vision.slug}").json()
    assert body["ordered_by"] == "kueue"
    assert [(row["kind"], row["name"], row["position"], row["ahead"]) for row in body["pending"]] == [
        ("job", "first", 1, {"count": 0, "requests": {}}),
        ("job", "second", 2, {"count": 1, "requests": {GPU: 1}}),
    ]
    assert [row["kind"] for row in body["holding"]] == ["allocation"]


def test_more_than_the_quota_is_said_to_be_too_much(submit: Submit, project: Project) -> None:
    job = become(project, submit("wide", pods=50), State.QUEUED, "ExceedsMaxQuota")
    assert "more than the team's quota" in job.message


def test_a_job_whose_node_affinity_no_flavor_of_the_queue_matches_is_told_so(submit: Submit, project: Project) -> None:
    """The guards read no comparison of numbers, which Kueue does; they refuse other products at once."""
    larger = {"key": "nvidia.com/gpu.product", "operator": "Gt", "values": ["1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [larger]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    uid = submit("odd", nodeSelector={}, affinity=affinity)
    found = become(project, uid, State.QUEUED, "NoMatchingFlavor").message
    # Kueue replaces its first message, which names the affinity, by one that names no cause.
    assert re.search("affinity (allows no kind|or tolerations allow none of the kinds).*that the team has quota", found)


def test_a_stopped_queue_is_told_with_its_cause(submit: Submit, project: Project, admin: ApiClient) -> None:
    admin.patch("clusterqueue", "team-vision", body={"spec": {"stopPolicy": "Hold"}})
    try:
        job = become(project, submit("stopped"), State.QUEUED, "Suspended")
        assert "stopped" in job.message
        assert "operator" in job.hint
    finally:
        admin.patch("clusterqueue", "team-vision", body={"spec": {"stopPolicy": "None"}})
    become(project, str(job.uid), State.RUNNING)


def test_what_a_guard_says_of_its_pods_is_on_the_jobs_page(
    submit: Submit, project: Project, member: User, other: User
) -> None:
    uid = submit("placed", past_guards=True, tolerations=[{"operator": "Exists"}])
    become(project, uid, State.ADMITTED)
    body = eventually(lambda: (found := client(member).get(f"/api/v1/jobs/{uid}").json())["refusals"] and found)
    assert any("tolerat" in refusal and "guard gpu-portal-" in refusal for refusal in body["refusals"])
    assert client(other).get(f"/api/v1/jobs/{uid}").status_code == 404


@pytest.fixture
def other() -> User:
    return User.objects.get(username="language-member")
