"""Asked hours are time held: how long an allocation was held, when its time is over, and when it gives up waiting."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from allocations.capacity.offering_index import OfferingIndex
from allocations.cluster.manifests import lease
from allocations.domain.objects import Slice, Snapshot
from allocations.domain.phases import Ending, Outcome, outcome
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import deadlines, recovery
from allocations.reconcile.metering.attribution import attribution
from allocations.requests import forecast, services
from portal.core import clock
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import mirror_lease
from tests.support.people import person

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
T0 = clock.now()


@pytest.fixture
def member(team):
    fleet(team)
    return person(team)


@pytest.fixture
def row(member, project) -> Allocation:
    with clock.frozen(T0):
        return again(allocate(member, project, hours=Decimal(8)))


def again(row) -> Allocation:
    return spec_of_row.rows().get(pk=row.pk)


def held(row, start, end=None):
    """Write a hold into the ledger: from ``start`` to ``end`` hours after the request."""
    key = uuid4()
    facts = attribution(row.project, row.offering, row.offering.gpu_share, member=row.requested_by.username)
    metering.open_interval(key, row.pk, f"{LOCAL}/{row.pk}", T0 + start * HOUR, facts, 1, {"kind": "test"})
    if end is not None:
        metering.close_interval(key, T0 + end * HOUR, {"kind": "test"})


def look(row, hours, *slices):
    """Reconcile the allocation's time so many hours after its request, as its controller does, with slices held."""
    with clock.frozen(T0 + hours * HOUR):
        spec = spec_of_row.resolved_spec(row)
        state = hold.assess(spec, spec_of_row.intent(row), Snapshot(), {}, clock.now(), spec_of_row.deadlines(row))
        state = replace(state, held=slices)
        transitions.record_time(row, state)
        deadlines.apply(row, spec, state)
        found = again(row)
        return found, hold.wake_at(spec, spec_of_row.intent(found), state)


def ended_by(row) -> tuple[str, str]:
    last = row.transitions.filter(type="end").last()
    return (row.ending, last.reason) if last else ("", "")


def test_hours_do_not_run_while_it_waits(row):
    row, wakes = look(row, 30)
    assert (row.ends_at, row.held_before, ended_by(row)) == (None, timedelta(0), ("", ""))
    assert wakes == T0 + timedelta(days=7)


def test_the_end_is_set_when_it_is_held_and_is_when_it_is_looked_at_again(row):
    held(row, 30)
    row, wakes = look(row, 31)
    assert row.ends_at == wakes == T0 + 38 * HOUR


def test_it_expires_at_the_end_of_its_hours(row):
    held(row, 30)
    row, _ = look(row, 38)
    assert ended_by(row) == ("expired", "ends_at")
    assert row.ends_at == T0 + 38 * HOUR


def test_an_eviction_keeps_the_hours_that_are_left(row):
    held(row, 1, 4)
    row, _ = look(row, 5)
    assert (row.ends_at, row.held_before) == (None, 3 * HOUR)
    held(row, 10)
    row, _ = look(row, 11)
    assert row.ends_at == T0 + 15 * HOUR


def test_an_evicted_one_that_nobody_looked_at_does_not_lose_the_time_until_someone_does(row):
    """The worker was down from before the eviction until after what would have been the end."""
    held(row, 1)
    row, _ = look(row, 2)
    metering.close_interval(UsageInterval.objects.get(holder_id=row.pk).key, T0 + 4 * HOUR, {"kind": "test"})
    row, _ = look(row, 12)
    assert (ended_by(row), row.held_before, row.ends_at) == (("", ""), 3 * HOUR, None)


def test_what_is_not_held_in_time_gives_up_waiting(row):
    row, _ = look(row, 7 * 24)
    assert ended_by(row) == ("expired", "gave_up_waiting")
    assert outcome(Ending(row.ending), was_held=False) == Outcome.EXPIRED
    assert "Ask again to wait longer" in row.transitions.get(type="end").message


def test_it_gives_up_when_it_was_told_to(member, project):
    with clock.frozen(T0):
        row = again(allocate(member, project, give_up_at=T0 + 2 * HOUR))
    assert look(row, 1)[1] == T0 + 2 * HOUR
    assert ended_by(look(again(row), 2)[0]) == ("expired", "gave_up_waiting")


def test_what_is_held_does_not_give_up(row):
    services.extend(row.requested_by, row, Decimal(24 * 30))
    held(row, 1)
    row, _ = look(again(row), 8 * 24)
    assert ended_by(row) == ("", "")


def test_after_an_eviction_it_waits_as_long_again(row):
    services.extend(row.requested_by, row, Decimal(24 * 30))
    held(row, 1, 24 * 8)
    row, wakes = look(again(row), 24 * 8 + 1)
    assert ended_by(row) == ("", "")
    assert wakes == T0 + timedelta(days=15)


def test_a_date_stays_as_it_is_asked(member, project):
    with clock.frozen(T0):
        row = again(allocate(member, project, ends_at=T0 + 48 * HOUR))
    assert (row.hours, row.give_up_at) == (None, T0 + 48 * HOUR)
    held(row, 1, 4)
    row, wakes = look(row, 5)
    assert row.ends_at == wakes == T0 + 48 * HOUR
    assert ended_by(look(row, 48)[0]) == ("expired", "ends_at")


def test_an_extension_adds_hours_whether_it_is_held_or_not(row, member):
    services.extend(member, row, Decimal(2))
    assert (row.hours, row.ends_at) == (Decimal(10), None)
    held(row, 1)
    row, _ = look(again(row), 2)
    services.extend(member, row, Decimal("0.5"))
    assert row.ends_at == T0 + timedelta(hours=11.5)


def test_an_extension_meanwhile_is_not_undone(row, member):
    held(row, 1)
    stale = again(row)
    services.extend(member, row, Decimal(2))
    look(stale, 9.5)
    assert ended_by(again(row)) == ("", "")
    assert look(again(row), 9.5)[0].ends_at == T0 + 11 * HOUR


def test_an_extension_of_a_date_moves_the_date(member, project):
    row = allocate(member, project, ends_at=T0 + 48 * HOUR)
    services.extend(member, row, Decimal(2))
    assert (row.hours, row.ends_at) == (None, T0 + 50 * HOUR)


def test_what_waits_is_expected_to_end_after_all_of_its_hours(row):
    later = T0 + 100 * HOUR
    assert [one.at for one in forecast.expected_releases(later, OfferingIndex())] == [later + 8 * HOUR]


def test_what_is_made_again_from_its_lease_has_the_hours_that_were_left(row, project):
    held(row, 1, 4)
    row, _ = look(row, 5)
    mirror_lease(row)
    pk = row.pk
    UsageInterval.objects.all().delete()
    Allocation.objects.all().delete()
    recovery.adopt(LOCAL, project.namespace)
    made = spec_of_row.rows().get(pk=pk)
    assert (made.hours, made.held_before, made.held_until) == (Decimal(8), 3 * HOUR, T0 + 4 * HOUR)
    held(made, 10)
    assert look(made, 11)[0].ends_at == T0 + 15 * HOUR


def test_what_is_held_with_admin_access_counts_although_it_is_not_charged(row):
    slice_ = Slice("h100-0/gpu-0", since=T0 + HOUR, is_charged=False)
    row, _ = look(row, 2, slice_)
    assert row.ends_at == T0 + 9 * HOUR
    row, _ = look(row, 4)
    assert (row.ends_at, row.held_before) == (None, 3 * HOUR)
    row, _ = look(row, 11, Slice("h100-0/gpu-1", since=T0 + 10 * HOUR, is_charged=False))
    assert row.ends_at == T0 + 15 * HOUR


def test_the_lease_says_nothing_of_the_time_to_kueue(row):
    """Kueue would deactivate the lease, and count from its admission, not from the hold."""
    assert "maximumExecutionTimeSeconds" not in lease.build(spec_of_row.resolved_spec(row))["spec"]
