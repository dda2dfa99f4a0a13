"""Transitions by time alone: start, expiry, the end of a wait, a failed start, and the notice of an eviction."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation
from allocations.requests import services
from deploy.local.control_plane import device_taint_rules
from portal.core import clock
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import held, intervals, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.failed_starts import first_failure, start_deadline
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
WAITS_S = 90.0


@dataclass(frozen=True)
class Waiting:
    """Allocations of one project that wait for their times together."""

    expiring: Allocation
    extended: Allocation
    starting_later: Allocation
    short_after_a_wait: Allocation
    giving_up: Allocation


@pytest.fixture(scope="module")
def own_project(lent_projects: LentProjects) -> Iterator[Project]:
    with lent_projects.lent() as project:
        yield project


@pytest.fixture(scope="module")
def waiting(own_project: Project, member: User, admin: ApiClient) -> Waiting:
    """Request them all at once: what each test waits for goes on while another waits."""

    def requested(**fields: Any) -> Allocation:
        return request_slices(member, own_project, "t4/shared", **fields)

    now = clock.now()
    rows = Waiting(
        expiring=requested(ends_at=now + timedelta(seconds=30)),
        extended=requested(ends_at=now + timedelta(seconds=35)),
        starting_later=requested(starts_at=clock.now() + timedelta(seconds=5)),
        short_after_a_wait=requested(hours=Decimal("0.005"), starts_at=now + timedelta(seconds=20)),
        giving_up=requested(hours=1, give_up_at=now + timedelta(seconds=40)),
    )
    for row in (rows.extended, rows.giving_up):
        wait_for(row, Phase.ACTIVE)
    services.extend(member, rows.extended, Decimal("0.5"))
    deactivate(admin, rows.giving_up, False)
    return rows


def test_an_allocation_expires_at_its_end(waiting: Waiting) -> None:
    row = wait_for(waiting.expiring, Phase.ENDED, WAITS_S)
    assert row.outcome == Outcome.EXPIRED
    end = intervals(row)[0].end
    assert end is not None
    assert row.ends_at is not None
    assert end >= row.ends_at


def test_an_extension_moves_the_end(waiting: Waiting) -> None:
    row = waiting.extended
    first_end = waiting.expiring.created_at + timedelta(seconds=37)
    eventually(lambda: clock.now() > first_end, within_s=WAITS_S)
    row.refresh_from_db()
    assert row.phase == Phase.ACTIVE
    assert waiting.expiring.ends_at is not None
    assert row.ends_at == waiting.expiring.ends_at + timedelta(minutes=30, seconds=5)


def test_a_later_start_is_scheduled_and_starts_then(waiting: Waiting) -> None:
    row = waiting.starting_later
    assert (row.phase, row.phase_until) == (Phase.SCHEDULED, row.starts_at), "as the request returned it"
    wait_for(row, Phase.ACTIVE)
    assert row.held_at is not None
    assert row.starts_at is not None
    assert row.held_at >= row.starts_at


def test_waiting_uses_no_hours_up(waiting: Waiting) -> None:
    """Its hours, 18 seconds, are fewer than it waits for its start."""
    row = wait_for(waiting.short_after_a_wait, Phase.ENDED, WAITS_S)
    [held_once] = intervals(row)
    assert (row.outcome, row.reason) == (Outcome.EXPIRED, "ends_at")
    assert row.ends_at == held_once.start + timedelta(seconds=18)
    assert held_once.end is not None
    assert held_once.end >= row.ends_at


def test_what_is_not_held_again_in_time_gives_up_waiting(waiting: Waiting) -> None:
    row = wait_for(waiting.giving_up, Phase.ENDED, 2 * WAITS_S)
    assert (row.outcome, row.reason) == (Outcome.EXPIRED, "gave_up_waiting")
    assert row.held_until is not None
    assert row.give_up_at is not None
    assert row.ended_at is not None
    assert row.ended_at >= row.held_until + (row.give_up_at - row.created_at)


def test_a_hold_without_a_device_gives_its_reservation_back_and_tries_again(
    project: Project, member: User, admin: ApiClient
) -> None:
    """Every h100 GPU becomes unhealthy after the request was accepted, so the scheduler finds none."""
    taint_h100(admin, "NoSchedule")
    try:
        with start_deadline("h100"):
            row = services.request(member, AllocationRequest(project=project.slug, offering="h100/whole"))
            reserved = eventually(lambda: lease_uid(admin, row))
            failed = first_failure(row)
        eventually(lambda: lease_uid(admin, row) != reserved)
    finally:
        taint_h100(admin, "")
    assert failed.reason == "no_fitting_device"
    assert "(try 1 of 3)" in failed.message
    assert "allocate all claims" in failed.message
    wait_for(row, Phase.ACTIVE)


def lease_uid(admin: ApiClient, row: Allocation) -> str:
    """Return the uid of its Workload; empty if there is none."""
    lease = admin.find("workload", f"{row.name}-lease", row.project.namespace)
    return str(lease.get("metadata", {}).get("uid", ""))


def taint_h100(admin: ApiClient, effect: str) -> None:
    """Create or delete an administrator's rule that taints all devices of the h100 pools."""
    for node in ("h100-0", "h100-1"):
        rule = {
            "apiVersion": device_taint_rules(),
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"test-{node}"},
            "spec": {
                "deviceSelector": {"driver": "gpu.nvidia.com", "pool": node},
                "taint": {"key": "test/unhealthy", "value": "yes", "effect": effect},
            },
        }
        if effect:
            admin.apply(rule)
        else:
            admin.delete("devicetaintrule", f"test-{node}")


def deactivate(admin: ApiClient, row: Allocation, active: bool) -> None:
    admin.patch("workload", f"{row.name}-lease", row.project.namespace, {"spec": {"active": active}})


def test_an_evicted_hold_leaves_after_its_notice_and_queues_again(
    project: Project, member: User, admin: ApiClient
) -> None:
    row = held(member, project, "l40s/whole")
    deactivate(admin, row, False)
    leaving = eventually(lambda: row.transitions.filter(to_phase=Phase.LEAVING).first())
    assert leaving is not None
    assert "Pods end at" in leaving.message
    wait_for(row, Phase.QUEUED, within_s=60)
    assert intervals(row)[0].end is not None
    deactivate(admin, row, True)
    wait_for(row, Phase.ACTIVE, within_s=60)
    assert len(intervals(row)) == 2


def test_an_evicted_hold_that_must_not_queue_again_ends(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole", requeue=False)
    deactivate(admin, row, False)
    wait_for(row, Phase.ENDED, within_s=60)
    assert row.outcome == Outcome.EVICTED
    assert intervals(row)[0].end is not None


def paused(admin: ApiClient, row: Allocation) -> None:
    """Evict the hold, and wait until nothing of it is held."""
    deactivate(admin, row, False)
    wait_for(row, Phase.QUEUED, within_s=60)
    eventually(lambda: refreshed(row).held_since is None)


def refreshed(row: Allocation) -> Allocation:
    row.refresh_from_db()
    return row


def test_an_eviction_keeps_the_hours_that_are_left(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "l40s/whole", hours=1)
    eventually(lambda: refreshed(row).ends_at is not None)
    paused(admin, row)
    first = intervals(row)[0]
    assert first.end is not None
    assert (row.ends_at, row.held_before, row.held_until) == (None, first.end - first.start, first.end)
    deactivate(admin, row, True)
    wait_for(row, Phase.ACTIVE, within_s=60)
    eventually(lambda: refreshed(row).ends_at is not None)
    assert row.ends_at == intervals(row)[1].start + timedelta(hours=1) - row.held_before


def test_what_is_never_held_gives_up_waiting(project: Project, member: User, admin: ApiClient) -> None:
    """Every h100 GPU becomes unhealthy after the request was accepted."""
    taint_h100(admin, "NoSchedule")
    try:
        row = request_slices(member, project, "h100/whole", give_up_at=clock.now() + timedelta(seconds=8))
        wait_for(row, Phase.ENDED, within_s=60)
    finally:
        taint_h100(admin, "")
    assert (row.outcome, row.reason, row.held_at) == (Outcome.EXPIRED, "gave_up_waiting", None)
    assert row.ended_at is not None
    assert row.give_up_at is not None
    assert row.ended_at >= row.give_up_at
