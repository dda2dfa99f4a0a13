"""Tenants' own queued Jobs in the ledger: charged for the larger of reservation and use, and counted once."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.cluster import kinds
from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.job_observations import JOB, at, charged_gpus, intervals, pod, seen, unused, workload
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(team, project):
    return fleet(team)


def test_a_job_is_billed_from_the_binding_of_its_pod_until_that_is_finished() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(node="", phase="Pending"), 1)])
    assert intervals() == []
    record_observations(LOCAL, [seen(pod(revision=11), 2)])
    record_observations(LOCAL, [seen(pod(phase="Succeeded", revision=12), 60)])
    assert intervals() == [(at(2), at(60), False, False)]


def test_a_job_whose_pods_are_never_bound_is_charged_from_its_admission_until_it_is_gone() -> None:
    record_observations(LOCAL, [seen(workload(admitted=False, revision=4), 0), seen(pod(node="", phase="Pending"), 1)])
    assert unused() == []
    record_observations(LOCAL, [seen(workload(), 5)])
    row = UsageInterval.objects.get()
    assert (row.holder_id, row.count, row.offering, row.unused) == (UUID(JOB), 2, "l40s/whole", True)
    assert (row.team, row.project, row.member, row.node, row.device) == ("vision", "vision-train", "", "", "")
    assert (row.slot, row.source_start["kind"]) == (f"local/job:{JOB}/l40s/nvidia.com/gpu", "Workload")
    record_observations(LOCAL, [seen(workload(revision=9), 90, gone=True)])
    assert unused() == [(at(5), at(90), 2)]


def test_pods_that_crash_at_once_leave_no_second_uncharged() -> None:
    record_observations(LOCAL, [seen(workload(), 0)])
    for number in range(3):
        name, start = f"train-{number}", 10 * (number + 1)
        record_observations(LOCAL, [seen(pod(name, revision=20 + number), start)])
        record_observations(LOCAL, [seen(pod(name, phase="Failed", revision=30 + number), start + 1)])
    record_observations(LOCAL, [seen(workload(revision=50), 60, gone=True)])
    assert {charged_gpus(second / 2) for second in range(120)} == {2}
    assert charged_gpus(60) == 0
    assert [(start, end) for start, end, _, _ in intervals()] == [(at(n), at(n + 1)) for n in (10, 20, 30)]


def test_what_a_finished_pod_had_is_charged_until_kueue_gives_it_back() -> None:
    record_observations(LOCAL, [seen(workload(pods=2), 0), seen(pod("train-a"), 2), seen(pod("train-b", "l40s-1"), 3)])
    record_observations(LOCAL, [seen(pod("train-a", phase="Succeeded", revision=20), 30)])
    assert unused() == [(at(0), at(2), 4), (at(2), at(3), 2), (at(30), None, 2)]
    record_observations(LOCAL, [seen(workload(pods=2, done=1, revision=21), 31)])
    assert unused()[-1] == (at(30), at(31), 2)
    assert [charged_gpus(second) for second in (1, 2.5, 10, 30.5, 31)] == [4, 4, 4, 4, 2]


def test_pods_that_end_after_their_quota_went_back_are_charged_until_they_are_gone() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    record_observations(LOCAL, [seen(workload(admitted=False, revision=20), 30)])
    assert (unused(), charged_gpus(35)) == ([(at(0), at(2), 2)], 2)
    record_observations(LOCAL, [seen(pod(revision=21), 40, gone=True)])
    assert (intervals(), charged_gpus(40)) == ([(at(2), at(40), False, False)], 0)


def test_a_job_admitted_again_while_its_old_pod_ends_is_charged_for_the_larger_of_both() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod("train-old"), 2)])
    record_observations(LOCAL, [seen(workload(admitted=False, revision=20), 30), seen(workload(revision=22), 35)])
    record_observations(LOCAL, [seen(pod("train-new", "l40s-1", revision=23), 36)])
    assert [charged_gpus(second) for second in (32, 35.5, 36)] == [2, 2, 4]
    record_observations(LOCAL, [seen(pod("train-old", revision=24), 40, gone=True)])
    assert charged_gpus(40) == 2


def test_what_is_reserved_is_counted_in_a_fixed_number_of_queries_however_many_pods_there_are() -> None:
    def asked(pods: int) -> int:
        UsageInterval.objects.all().delete()
        MirrorObject.objects.all().delete()
        found = [seen(pod(f"train-{n}"), 2) for n in range(pods)]
        record_observations(LOCAL, [seen(workload(pods=pods + 1), 0), *found])
        with CaptureQueriesContext(connection) as queries:
            record_observations(LOCAL, [seen(pod("train-last", revision=40), 9)])
        return len(queries)

    assert asked(2) == asked(20)


def test_what_is_billed_says_whose_it_is_and_on_which_node() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    row = UsageInterval.objects.get(unused=False)
    assert (row.holder_id, row.count, row.offering, row.node) == (UUID(JOB), 2, "l40s/whole", "l40s-0")
    assert (row.team, row.project, row.member, row.device) == ("vision", "vision-train", "", "")
    assert row.source_start["job"] == "train"


def test_a_pod_that_was_deleted_is_billed_until_it_is_gone() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    record_observations(LOCAL, [seen(pod(revision=20), 30, gone=True)])
    assert intervals() == [(at(2), at(30), False, False)]


def test_a_pod_that_is_bound_after_its_jobs_workload_is_gone_is_billed_all_the_same() -> None:
    """The Job was deleted while the Job controller created its pods, which take their time to end."""
    record_observations(LOCAL, [seen(workload(), 0), seen(workload(revision=6), 1, gone=True), seen(pod(), 2)])
    record_observations(LOCAL, [seen(pod(revision=20), 30, gone=True)])
    assert (at(2), at(30), False, False) in intervals()


def test_what_is_seen_again_is_billed_once() -> None:
    batch = [seen(workload(), 0), seen(pod(), 2)]
    record_observations(LOCAL, batch)
    record_observations(LOCAL, [*batch, seen(workload(revision=6), 9), seen(pod(revision=13), 10)])
    assert intervals() == [(at(2), None, False, False)]


def test_a_reservation_that_was_seen_again_is_charged_once() -> None:
    batch = [seen(workload(pods=2), 0), seen(pod(), 2)]
    record_observations(LOCAL, batch)
    record_observations(LOCAL, [*batch, seen(workload(pods=2, revision=6), 9), seen(pod(revision=13), 10)])
    record_list(LOCAL, KINDS["Workload"], [seen(workload(pods=2, revision=6), 20, live=False)], 30, at(20))
    reconcile_inventory(LOCAL)
    assert unused() == [(at(0), at(2), 4), (at(2), None, 2)]


def test_each_pod_of_a_job_is_billed_for_itself() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod("train-a"), 2), seen(pod("train-b", "l40s-1"), 3)])
    record_observations(LOCAL, [seen(pod("train-a", phase="Failed", revision=20), 9)])
    assert intervals() == [(at(2), at(9), False, False), (at(3), None, False, False)]


def test_a_job_that_no_queue_admitted_is_foreign_use_and_billed_to_nobody() -> None:
    record_observations(LOCAL, [seen(pod(), 2)])
    assert intervals() == []


def test_a_job_outside_all_projects_is_billed_to_nobody() -> None:
    stranger = pod()
    stranger["metadata"]["namespace"] = "elsewhere"
    record_observations(LOCAL, [seen(workload("elsewhere"), 0), seen(stranger, 2)])
    assert intervals() == []


def test_a_repeated_change_of_a_jobs_workload_asks_no_more_for_what_is_billed() -> None:
    pods = [seen(pod(f"train-{n}"), 2) for n in range(20)]
    record_observations(LOCAL, [seen(workload(), 0), *pods])
    with executed() as asked:
        record_observations(LOCAL, [seen(workload(revision=6), 9)])
    assert len(intervals()) == 20
    assert not unused()[1:]
    assert not [sql for sql, _ in asked if "advisory" in sql and "slot" in sql]


@pytest.mark.parametrize(
    "uid", ["x", "", "{6f9d0c1e-0000-4000-8000-000000000000}", "6F9D0C1E-0000-4000-8000-000000000000"]
)
@pytest.mark.parametrize("body", [pod(), workload()], ids=["pod", "Workload"])
def test_a_job_whose_uid_a_tenant_has_made_up_is_none(body: dict[str, Any], uid: str) -> None:
    owner = {"kind": "Job", "name": "train", "uid": uid, "controller": True}
    made_up = {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}
    found = kinds.observe(KINDS[body["kind"]], made_up, at=at(0), live=True)
    record_observations(LOCAL, [found] if found else [])
    reconcile_inventory(LOCAL)
    assert intervals() == []
