"""Redis loses its data, messages are lost, and the database is restored from a backup."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import redis
from celery import current_app
from django.conf import settings

from allocations.domain.phases import Phase
from allocations.models import Allocation
from deploy.local.runner import Local
from tests.support.cluster.allocations import request_slices
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.faults import backup
from tests.support.faults.crowd import Crowd
from tests.support.faults.fault import Fault
from tests.support.faults.witness import Slot, Witness

pytestmark = pytest.mark.faults
PORTAL = ("web", "worker", "beat", "watcher")
QUEUE = "celery"
DROPPING_S = 10.0
RESTORED_S = 60.0
WORKER_STUCK_S = float(settings.WORKER_STUCK_S)


def test_redis_forgets_everything_and_restarts(local: Local, crowd: Crowd, under_fault: Fault) -> None:
    with under_fault():
        redis.Redis.from_url(settings.REDIS_URL).flushall()
        local.kill("redis")
        crowd.release(crowd.live()[:10])
        local.wait_ready("redis")


def test_half_of_all_messages_are_dropped(crowd: Crowd, under_fault: Fault) -> None:
    with under_fault(), _another_consumer() as dropped:
        over_at = time.monotonic() + DROPPING_S
        crowd.release(crowd.live()[:10])
        eventually(lambda: time.monotonic() > over_at, within_s=DROPPING_S + 5)
        assert dropped


def test_a_worker_that_takes_no_messages_any_more_is_replaced(local: Local, crowd: Crowd, under_fault: Fault) -> None:
    former = local.pids()["worker"]
    with under_fault(within_s=2 * WORKER_STUCK_S):
        current_app.control.cancel_consumer(current_app.conf.task_default_queue)
        crowd.release(crowd.live()[:10])
        eventually(lambda: local.pids().get("worker", former) != former, within_s=2 * WORKER_STUCK_S)
        local.wait_ready("worker")


@contextmanager
def _another_consumer() -> Iterator[list[float]]:
    """Take messages and do nothing. Redis serves the longest waiting client, so it gets every second one, or more while
    the worker is busy.
    """
    over, dropped = threading.Event(), []
    client = redis.Redis.from_url(settings.REDIS_URL)

    def consume() -> None:
        while not over.is_set():
            if client.brpop([QUEUE], timeout=1):
                dropped.append(time.monotonic())

    thread = threading.Thread(target=consume, name="another consumer")
    thread.start()
    try:
        yield dropped
    finally:
        over.set()
        thread.join()
        client.close()


def test_the_database_is_restored_to_one_minute_ago(
    local: Local, crowd: Crowd, witness: Witness, kubectl: Kubectl, under_fault: Fault, tmp_path: Path
) -> None:
    """Requests made since then are adopted from their leases, with the same objects and devices. Two of them have the
    names of others whose end was lost.
    """
    crowd.request_slices(4)
    eventually(lambda: len(_active(crowd)) > 1)
    former = _active(crowd)[:2]
    dumped_at = time.time()
    dump = backup.dump(tmp_path / "backup")
    taken_at = time.monotonic()
    with under_fault(hidden_s=RESTORED_S, lost_since=dumped_at):
        crowd.release(former)
        crowd.release(crowd.live()[:10])
        ended = Allocation.objects.filter(pk__in=[row.pk for row in former]).exclude(ended_at=None)
        eventually(lambda: ended.count() == len(former), within_s=2 * RESTORED_S)
        for row in former:
            request_slices(row.requested_by, row.project, row.offering.key, name=row.name)
        eventually(lambda: time.monotonic() > taken_at + RESTORED_S, within_s=RESTORED_S + 5)
        live = {row.pk: row for row in crowd.live()}
        active = _active(crowd)
        before = _uids(kubectl, crowd)
        held = {row: eventually(partial(_held_slots, witness, row)) for row in active}
        for process in PORTAL:
            local.hold(process)
        backup.restore(dump)
        kept = set(Allocation.objects.filter(pk__in=live).values_list("pk", flat=True))
        for process in PORTAL:
            local.start(process)
        for process in PORTAL:
            local.wait_ready(process)
    adopted = Allocation.objects.filter(pk__in=live.keys() - kept)
    assert len(adopted) == len(live) - len(kept) > 0
    assert all(row.recovered for row in adopted)
    assert {row.reason for row in ended.all()} == {"name_recovered"}
    assert {row.name for row in former} <= {row.name for row in adopted}
    after = _uids(kubectl, crowd)
    for row in active:
        own_uids = {key: uid for key, uid in before.items() if key[1:3] == (row.project.namespace, row.name)}
        assert own_uids.items() <= after.items(), f"objects of {row.name} were made anew"
        eventually(partial(_holds, witness, row, held[row]))


def _active(crowd: Crowd) -> list[Allocation]:
    return [row for row in crowd.live() if row.phase == Phase.ACTIVE]


def _held_slots(witness: Witness, row: Allocation) -> set[Slot]:
    """Return what an allocation holds now; a former one with its name may have held other devices."""
    key = (row.project.namespace, row.name)
    return {slot for slot, holds in list(witness.holds.items()) if slot[:2] == key and holds and not holds[-1].ended}


def _holds(witness: Witness, row: Allocation, slots: set[Slot]) -> bool:
    """Return whether it holds all of these. No quota lists an allocation for a moment if its row is made again after
    another one of its name was ended.
    """
    return slots <= _held_slots(witness, row)


def _uids(kubectl: Kubectl, crowd: Crowd) -> dict[tuple[str, str, str, str], str]:
    """Return the uids of all objects that one allocation owns, by (kind, namespace, allocation, name)."""
    namespaces = {project.namespace for project in crowd.projects}
    kinds = "workloads.kueue.x-k8s.io,resourceclaims,pods"
    answer = json.loads(kubectl("get", kinds, "-A", "-l", "gpu-portal.io/allocation", "-o", "json"))
    return {
        (o["kind"], m["namespace"], m["labels"]["gpu-portal.io/allocation"], m["name"]): m["uid"]
        for o in answer["items"]
        if (m := o["metadata"])["namespace"] in namespaces
    }
