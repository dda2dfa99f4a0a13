"""Intervals that the watcher could not open are opened for what is held at that moment."""

from typing import Any

import pytest

from allocations.models import Allocation
from allocations.reconcile import allocation_state
from allocations.reconcile.allocation_state import AllocationState
from allocations.reconcile.metering import repair
from allocations.reconcile.mirror_writer import record_observations
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import DEVICES, at, claim, hold, seen

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(team: Team, project: Project) -> Any:
    fleet(team)
    with clock.frozen(at(60)):
        yield


@pytest.fixture
def former(member: User, project: Project) -> Allocation:
    return allocate(member, project, "h100/whole", name="former")


@pytest.fixture
def row(member: User, project: Project) -> Allocation:
    return allocate(member, project, "h100/whole", name="next")


@pytest.fixture
def blocked(former: Allocation, row: Allocation) -> AllocationState:
    """Return what is recorded of a hold whose start was listed before the end of the former hold on its device."""
    record_observations(LOCAL, hold(former, 0, 10))
    record_observations(LOCAL, hold(row, 20, 30))
    recorded = allocation_state.read(LOCAL, str(row.pk))
    assert recorded is not None
    assert not recorded.intervals.latest
    record_observations(LOCAL, [seen(claim(former, 28, []), 21)])
    return recorded


def repair_by(recorded: AllocationState) -> bool:
    return repair.open_missing(recorded.row, recorded.snapshot, recorded.intervals)


def test_a_hold_is_charged_once_the_former_one_on_its_device_has_ended(blocked: AllocationState) -> None:
    assert repair_by(blocked)
    [interval] = UsageInterval.objects.filter(holder_id=blocked.row.pk)
    assert (interval.start, interval.end) == (at(21), None)


def test_a_hold_that_ended_since_it_was_read_is_not_charged(blocked: AllocationState) -> None:
    """Nothing would close the interval: its end was recorded before."""
    record_observations(LOCAL, [seen(claim(blocked.row, 40, []), 22)])
    assert not repair_by(blocked)
    assert not UsageInterval.objects.filter(holder_id=blocked.row.pk).exists()


def test_nothing_is_opened_twice(blocked: AllocationState) -> None:
    assert repair_by(blocked)
    assert not repair_by(blocked)


def test_what_is_free_of_several_devices_is_charged_while_another_holder_has_the_rest(
    former: Allocation, member: User, project: Project
) -> None:
    row = allocate(member, project, "h100/whole", name="two", count=2)
    free = {**DEVICES[0], "request": "slice-1", "device": "gpu-0"}
    record_observations(LOCAL, [*hold(former, 0, 10), *hold(row, 20, 30)])
    record_observations(LOCAL, [seen(claim(row, 40, [free, *DEVICES]), 22)])
    UsageInterval.objects.filter(holder_id=row.pk).delete()
    recorded = allocation_state.read(LOCAL, str(row.pk))
    assert recorded is not None
    with pytest.raises(SlotHeld):
        repair_by(recorded)
    assert [interval.slot for interval in UsageInterval.objects.filter(holder_id=row.pk)] == ["local/h100-0/gpu-0"]
