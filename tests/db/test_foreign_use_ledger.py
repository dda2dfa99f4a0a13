"""The record of GPUs that pods and claims use without an allocation."""

from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from allocations.cluster import names
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import Allocation
from allocations.reconcile import allocation_state
from allocations.reconcile.metering import foreign_use
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.tenants.models import Project, Team, User
from quotas.metering.models import ForeignUse
from tests.support import observed
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import allocate, fleet
from tests.support.observed import DEVICES, at, hold_quota, seen
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db
SLOT = "local/pod:trainer/nvidia.com/gpu"


OF_TRAIN: dict[str, Any] = {
    "namespace": "vision-train",
    "labels": {names.MANAGED: "true", names.ALLOCATION: "train"},
}


@pytest.fixture
def train(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of one l40s that is held."""
    fleet(team)
    row = allocate(member, project, name="train")
    watch(-60, hold_quota(row, 1))
    return row


def pod(
    revision: int = 1,
    phase: str = "Running",
    node: str = "l40s-0",
    gpus: int = 2,
    resource: str = "nvidia.com/gpu",
    **metadata: Any,
) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {resource: str(gpus)}} if gpus else {}}
    names = {"name": "trainer", "namespace": "elsewhere", "uid": "trainer", "resourceVersion": str(revision)}
    spec = {"nodeName": node, "containers": [container], "tolerations": [{"key": "nvidia.com/gpu"}]}
    return {"kind": "Pod", "metadata": names | metadata, "spec": spec, "status": {"phase": phase}}


def claim(revision: int, *devices: str, driver: str = "gpu.nvidia.com", **metadata: Any) -> dict[str, Any]:
    results = [{"request": "r", "driver": driver, "pool": "h100-0", "device": device} for device in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    names = {"name": "one", "namespace": "elsewhere", "uid": "claim-1", "resourceVersion": str(revision)}
    return {"kind": "ResourceClaim", "metadata": names | metadata, "status": status}


def share(shares: str, **fields: str) -> dict[str, Any]:
    """Return a claim with a share of a device that serves several."""
    body = claim(1, "gpu-0")
    [result] = body["status"]["allocation"]["devices"]["results"]
    result |= {"shareID": "s" * 36, "consumedCapacity": {"shares": shares}, **fields}
    return body


def watch(second: float, body: dict[str, Any], *, gone: bool = False) -> None:
    record_observations(LOCAL, [seen(body, second, gone=gone)])


def history() -> list[tuple[str, int, datetime, datetime | None]]:
    rows = ForeignUse.objects.order_by("start", "slot")
    return [(row.slot, row.count, row.start, row.end) for row in rows]


def test_a_pod_uses_gpus_from_its_node_until_it_has_finished():
    watch(0, pod(1, "Pending", node=""))
    watch(10, pod(2))
    watch(20, pod(3))
    watch(60, pod(4, "Succeeded"))
    watch(70, pod(5, "Succeeded"), gone=True)
    assert history() == [(SLOT, 2, at(10), at(60))]


def test_a_deleted_pod_uses_nothing_any_more():
    watch(0, pod())
    watch(60, pod(2), gone=True)
    assert history() == [(SLOT, 2, at(0), at(60))]


def test_namespace_and_controller_tell_whose_it_is():
    owner = {"kind": "DaemonSet", "name": "dcgm", "uid": "d", "controller": True}
    watch(0, pod(ownerReferences=[owner]))
    row = ForeignUse.objects.get()
    assert (row.namespace, row.consumer_kind, row.consumer, row.owner_kind) == (
        "elsewhere",
        "Pod",
        "trainer",
        "DaemonSet",
    )
    assert (row.node, row.kind, row.name) == ("l40s-0", "resource", "nvidia.com/gpu")


@pytest.mark.parametrize(
    "body",
    [
        pod(gpus=0),
        pod(**OF_TRAIN),
        claim(1, "gpu-0", driver="other.example"),
    ],
    ids=["a pod without GPUs", "a pod of an allocation", "another driver's claim"],
)
def test_what_uses_no_gpus_or_has_an_allocation_is_not_recorded(body: dict[str, Any], train: Allocation):
    watch(0, body)
    assert history() == []


def test_each_device_of_a_claim_is_a_use_while_it_is_allocated():
    watch(0, claim(1))
    watch(10, claim(2, "gpu-0", "gpu-1"))
    watch(60, claim(3))
    assert history() == [("local/h100-0/gpu-0", 1, at(10), at(60)), ("local/h100-0/gpu-1", 1, at(10), at(60))]


def test_a_device_that_another_claim_takes_over_is_a_use_of_its_own():
    watch(0, claim(1, "gpu-0"))
    other = claim(2, "gpu-0", name="two", uid="claim-2")
    watch(60, other)
    watch(60, claim(3))
    assert [(row.uid, row.start, row.end) for row in ForeignUse.objects.order_by("start")] == [
        ("claim-1", at(0), at(60)),
        ("claim-2", at(60), None),
    ]


def test_a_use_that_becomes_an_allocations_ends(train: Allocation):
    watch(0, pod(namespace=train.project.namespace))
    watch(60, pod(2, **OF_TRAIN))
    assert history() == [(SLOT, 2, at(0), at(60))]


def test_a_label_alone_is_no_allocation(train: Allocation):
    watch(0, pod(labels=OF_TRAIN["labels"]))
    watch(10, claim(1, "gpu-0", **OF_TRAIN | {"labels": {names.ALLOCATION: "no-such"}}))
    assert len(history()) == 2


def test_what_an_allocation_held_while_its_row_was_lost_is_no_use_without_one_once_it_is_recovered(
    train: Allocation, member: User, project: Project
):
    row = allocate(member, project, "h100/whole", name="lost")
    with_two = [*DEVICES, {**DEVICES[0], "device": "gpu-2"}]
    Allocation.objects.filter(pk=row.pk).update(name="other")
    watch(0, observed.claim(row, 10, DEVICES))
    watch(5, claim(2, "gpu-5", namespace=project.namespace))
    Allocation.objects.filter(pk=row.pk).update(name="lost", recovered=True)
    watch(10, observed.claim(row, 11, with_two))
    assert [end for *_, end in history()] == [None, None]
    state = allocation_state.read(LOCAL, str(row.pk))
    assert state is not None
    foreign_use.end_of_recovered(state.row, state.snapshot)
    assert [(slot, start, end) for slot, _, start, end in history()] == [
        ("local/h100-0/gpu-1", at(0), at(0)),
        ("local/h100-0/gpu-5", at(5), None),
    ]


def test_a_use_that_a_list_dates_before_its_last_end_begins_there():
    watch(0, claim(1, "gpu-0"))
    watch(60, claim(2))
    record_observations(LOCAL, [seen(claim(3, "gpu-0"), 50, live=False)])
    assert [row[2:] for row in history()] == [(at(0), at(60)), (at(60), None)]


@pytest.mark.parametrize(
    "body",
    [
        pod(ownerReferences=[{"kind": "K" * 300, "name": "a", "uid": "u", "controller": True}]),
        pod(resource="nvidia.com/" + "a" * 63),
        pod(gpus=3_000_000_000),
        pod(gpus=10**30),
        share("-5"),
        share("1e30"),
        share("500m"),
        share("1", pool="p" * 253, device="d" * 63),
    ],
    ids=[
        "the kind of an owner",
        "the name of a resource",
        "many GPUs",
        "more GPUs than a number has room for",
        "less than no share",
        "more shares than a number has room for",
        "half a share",
        "the name of a pool",
    ],
)
def test_whatever_a_pod_or_claim_says_can_be_recorded(body: dict[str, Any]):
    watch(0, body)
    assert len(history()) == 1


def test_what_a_list_does_not_have_ended_at_its_last_sighting_estimated():
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 1, at(0))
    record_list(LOCAL, KINDS["Pod"], [], 2, at(60))
    row = ForeignUse.objects.get()
    assert (row.end, row.estimated_start, row.estimated_end) == (at(0), True, True)


def test_a_list_records_what_was_there_before_foreign_use_was_recorded():
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 1, at(0))
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(1, "gpu-0"), 0, live=False)], 1, at(0))
    ForeignUse.objects.all().delete()
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 60, live=False)], 2, at(60))
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(1, "gpu-0"), 60, live=False)], 2, at(60))
    assert {row.slot for row in ForeignUse.objects.filter(end=None)} == {SLOT, "local/h100-0/gpu-0"}


def test_an_event_that_changes_no_use_writes_nothing():
    watch(0, pod())

    watch(10, pod(2, deletionTimestamp="2026-11-02T12:00:30Z"))
    assert history() == [(SLOT, 2, at(0), None)]


def foreign_statements(*observations: Observation) -> int:
    """Record the observations in one batch; return how many statements were about foreign use."""
    with executed() as queries:
        record_observations(LOCAL, observations)
    return sum(ForeignUse._meta.db_table in sql for sql, _ in queries)


def test_what_uses_no_gpus_takes_no_statement(train: Allocation):
    bodies = [pod(gpus=0), pod(name="waits", node=""), pod(name="held", **OF_TRAIN), claim(1)]
    assert foreign_statements(*(seen(body, 0) for body in bodies)) == 0


def test_uses_of_one_batch_take_two_statements_to_begin_however_many():
    pods = [pod(name=f"p-{number}", uid=f"p-{number}") for number in range(9)]
    assert foreign_statements(*(seen(body, number) for number, body in enumerate(pods))) == 2
    assert [row[2] for row in history()] == [at(number) for number in range(9)]


def test_a_use_that_ends_in_the_batch_in_which_it_began_has_an_end():
    record_observations(LOCAL, [seen(pod(), 0), seen(pod(2, "Succeeded"), 40)])
    assert history() == [(SLOT, 2, at(0), at(40))]


def test_a_device_that_is_given_back_and_allocated_anew_in_one_batch_is_used_twice():
    record_observations(LOCAL, [seen(claim(1, "gpu-0"), 0), seen(claim(2), 20), seen(claim(3, "gpu-0"), 40)])
    assert [row[2:] for row in history()] == [(at(0), at(20)), (at(40), None)]


def test_the_last_end_of_a_pods_uses_is_read_by_index():
    """The watcher reads it for each pod, and the table only grows."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "foreign_use_uid" in ForeignUse.objects.filter(uid__in=["a"], slot__in=["b"], end__isnull=False).explain()


def test_a_pod_of_the_same_uid_in_another_cluster_has_a_use_of_its_own():
    make_cluster("far")
    for cluster, second in ((LOCAL, 0), ("far", 5)):
        record_observations(cluster, [seen(pod(), second)])
    record_observations("far", [seen(pod(2), 60, gone=True)])
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 90, live=False)], 2, at(90))
    rows = ForeignUse.objects.order_by("start")
    assert [(row.cluster_id, row.start, row.end) for row in rows] == [(LOCAL, at(0), None), ("far", at(5), at(60))]
