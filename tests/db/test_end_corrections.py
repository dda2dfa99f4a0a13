"""Ends that nobody saw: the last sighting, until the pod itself says when it finished."""

import random
from datetime import datetime
from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.models import Allocation
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.metering import balance
from quotas.metering import services as metering
from quotas.metering.models import Correction, ForeignUse, UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.job_observations import JOB, charged_gpus, intervals, workload
from tests.support.job_observations import pod as pod_of_job
from tests.support.observed import at, hold_quota, raw, seen
from tests.support.quotas import hour

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(team: Team, project: Project) -> Any:
    fleet(team)
    with clock.frozen(at(3600)):
        yield


@pytest.fixture
def train(member: User, project: Project) -> Allocation:
    return allocate(member, project, name="train")


def finished(body: dict[str, Any], second: float) -> dict[str, Any]:
    """Return the pod as it says that its containers finished, the last one then."""
    times = [f"{at(one):%FT%TZ}" for one in (second - 20, second)]
    statuses = [{"name": "c", "state": {"terminated": {"finishedAt": one}}} for one in times]
    body["metadata"]["resourceVersion"] = "100"
    return body | {"status": {"phase": "Succeeded", "containerStatuses": statuses}}


def pod(**metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    names = {"name": "trainer", "namespace": "elsewhere", "uid": "trainer", "resourceVersion": "1"}
    spec = {"nodeName": "l40s-0", "containers": [container]}
    return {"kind": "Pod", "metadata": names | metadata, "spec": spec, "status": {"phase": "Running"}}


def watch(second: float, body: dict[str, Any], **how: bool) -> None:
    record_observations(LOCAL, [seen(body, second, **how)])


def list_pods(second: float, *bodies: dict[str, Any], revision: int = 200) -> None:
    record_list(LOCAL, KINDS["Pod"], [seen(body, second, live=False) for body in bodies], revision, at(second))


def unmanaged() -> list[tuple[datetime, datetime | None, bool]]:
    return [(row.start, row.end, row.estimated_end) for row in ForeignUse.objects.order_by("start")]


def corrections() -> list[tuple[datetime, datetime]]:
    return [(row.former_end, row.end) for row in Correction.objects.order_by("pk")]


def test_a_pod_that_finished_in_an_outage_ends_when_it_says() -> None:
    list_pods(0, pod(), revision=1)
    list_pods(600, finished(pod(), 240))
    assert unmanaged() == [(at(0), at(240), False)]
    row = Correction.objects.get()
    assert (row.former_end, row.end, row.cause) == (at(0), at(240), "finished")
    assert (row.evidence["uid"], row.recorded_at) == ("trainer", at(3600))


def test_a_pod_that_finished_in_an_outage_of_days_ends_when_it_says() -> None:
    days = 24 * 3600
    list_pods(0, pod(), revision=1)
    with clock.frozen(at(3 * days)):
        list_pods(3 * days, finished(pod(), 2 * days))
    assert unmanaged() == [(at(0), at(2 * days), False)]
    assert corrections() == [(at(0), at(2 * days))]


def test_an_end_that_was_watched_is_as_watched() -> None:
    watch(0, pod())
    watch(245, finished(pod(), 240))
    assert (unmanaged(), corrections()) == ([(at(0), at(245), False)], [])


def test_a_pod_that_is_gone_ended_at_its_last_sighting() -> None:
    list_pods(0, pod(), revision=1)
    list_pods(600)
    assert (unmanaged(), corrections()) == ([(at(0), at(0), True)], [])


def test_another_pod_of_the_name_says_nothing() -> None:
    list_pods(0, pod(), revision=1)
    list_pods(600, finished(pod(uid="other"), 240))
    assert (unmanaged(), corrections()) == ([(at(0), at(0), True)], [])


def test_a_pod_without_the_time_of_a_container_says_nothing() -> None:
    list_pods(0, pod(), revision=1)
    body = finished(pod(), 240)
    del body["status"]["containerStatuses"][0]["state"]
    list_pods(600, body)
    assert (unmanaged(), corrections()) == ([(at(0), at(0), True)], [])


def test_a_time_in_the_future_corrects_nothing() -> None:
    list_pods(0, pod(), revision=1)
    list_pods(600, finished(pod(), 4000))
    assert corrections() == []


def test_a_time_in_the_future_is_no_end_of_a_queued_jobs_pod() -> None:
    watch(0, workload())
    watch(0, pod_of_job())
    list_pods(0, pod_of_job(), revision=12)
    list_pods(600, finished(pod_of_job(), 4000))
    assert [(end, estimated) for _, end, _, estimated in intervals()] == [(at(0), True)]


def test_the_same_list_again_corrects_nothing_more() -> None:
    list_pods(0, pod(), revision=1)
    for revision in (200, 201, 202):
        list_pods(600, finished(pod(), 240), revision=revision)
    assert corrections() == [(at(0), at(240))]


def test_what_a_pod_used_beyond_its_hold_is_corrected(train: Allocation) -> None:
    watch(0, hold_quota(train, 1))
    body = raw("Pod", train, "trainer", 2, **{key: pod()[key] for key in ("spec", "status")})
    body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "3"
    watch(10, body)
    list_pods(10, body, revision=5)
    list_pods(600, finished(body, 240))
    [row] = UsageInterval.objects.filter(slot__contains="/pod:")
    assert (row.count, row.end, row.estimated_end) == (2, at(240), False)
    assert row.corrections.count() == 1


def test_a_pod_of_a_queued_job_ends_when_it_says_and_its_reservation_goes_on_from_there() -> None:
    watch(0, workload())
    watch(0, pod_of_job())
    list_pods(0, pod_of_job(), revision=12)
    list_pods(600, finished(pod_of_job(), 240))
    assert [(end, estimated) for _, end, _, estimated in intervals()] == [(at(240), False)]
    assert [charged_gpus(second) for second in (10, 239, 241, 900)] == [2, 2, 2, 2]


def test_an_end_that_a_repair_has_estimated_is_corrected_later() -> None:
    watch(0, workload())
    watch(0, pod_of_job())
    list_pods(0, pod_of_job(), revision=12)
    [row] = UsageInterval.objects.filter(holder_id=JOB, unused=False)
    metering.close_interval(row.key, at(500), {"kind": "none"}, estimated=True)
    list_pods(600, finished(pod_of_job(), 240))
    assert (at(500), at(240)) in corrections()
    row.refresh_from_db()
    assert (row.end, row.estimated_end) == (at(240), False)


@pytest.mark.parametrize("seed", range(8))
def test_facts_that_come_late_or_twice_give_the_same_ends_in_any_order(seed: int) -> None:
    """Five pods finish in an outage; lists of some of them come in random order and repeatedly."""
    rng = random.Random(seed)
    bodies = [pod(name=f"p-{n}", uid=f"p-{n}") for n in range(5)]
    list_pods(0, *bodies, revision=1)
    ended = [finished(pod(name=f"p-{n}", uid=f"p-{n}"), 100 + n) for n in range(5)]
    for body in rng.choices(ended, k=10) + rng.sample(ended, 5):
        watch(0, body, live=False)
    ends = dict(ForeignUse.objects.values_list("uid", "end"))
    assert ends == {f"p-{n}": at(100 + n) for n in range(5)}
    assert Correction.objects.count() == 5
    assert balance.of_hour(LOCAL, hour(12)).failures == []
