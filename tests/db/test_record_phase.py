"""The phase of a row and the entries of its timeline change together."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.domain.objects import Snapshot
from allocations.domain.phases import LeaseFacts, Phase
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile.metering.attribution import attribution
from portal.core import clock
from quotas.metering import services as metering
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person

pytestmark = pytest.mark.django_db
T0 = clock.now()


@pytest.fixture
def row(team, project):
    fleet(team)
    with clock.frozen(T0):
        return spec_of_row.rows().get(pk=allocate(person(team), project).pk)


def observed(row, **facts):
    """Return the state of the row without any object in the cluster, and with these facts."""
    spec, intent = spec_of_row.resolved_spec(row), spec_of_row.intent(row)
    state = hold.assess(spec, intent, Snapshot(), {}, clock.now(), spec_of_row.deadlines(row))
    lease = facts.get("lease", state.lease)
    return replace(state, lease=lease, facts=replace(state.facts, **facts))


def timeline(row):
    return [(one.type, one.from_phase, one.to_phase) for one in row.transitions.order_by("id")]


def test_a_phase_and_its_entry_are_one_statement(row):
    with CaptureQueriesContext(connection) as queries:
        transitions.record_phase(row, observed(row))
    assert len(queries) == 1
    again = Allocation.objects.get(pk=row.pk)
    assert (again.phase, again.reason, again.message) == (row.phase, row.reason, row.message)
    assert (row.phase, row.reason) == (Phase.QUEUED, "submitted")
    last = row.transitions.last()
    assert (last.reason, last.message, last.actor) == ("submitted", row.message, "portal")
    assert last.evidence == {"kind": "Workload", "name": f"{row.name}-lease", "resource_version": ""}


def test_what_was_admitted_and_held_between_two_reconciles_has_both_entries_in_their_order(row):
    admitted = T0 + timedelta(seconds=3)
    lease = LeaseFacts(reserved=True, admitted=True, admitted_at=admitted)
    with clock.frozen(T0 + timedelta(seconds=5)):
        transitions.record_phase(row, observed(row, lease=lease, held=True, listed=True))
    assert timeline(row) == [
        ("requested", "", "queued"),
        ("phase", "queued", "starting"),
        ("phase", "starting", "active"),
    ]
    assert [one.at for one in row.transitions.order_by("id")] == [T0, admitted, T0 + timedelta(seconds=5)]


@pytest.mark.parametrize("seconds", [0, 4])
def test_what_was_held_and_evicted_between_two_reconciles_was_held(row, seconds):
    """After a restore of the database, a row of the backup may be held for as long as its released objects last."""
    key = uuid4()
    facts = attribution(row.project, row.offering, row.offering.gpu_share, member=row.requested_by.username)
    metering.open_interval(key, row.pk, f"{LOCAL}/{row.pk}", T0, facts, 1, {"kind": "test"})
    metering.close_interval(key, T0 + timedelta(seconds=seconds), {"kind": "test"})
    with clock.frozen(T0 + timedelta(seconds=5)):
        state = observed(row)
        transitions.record_time(row, state)
        transitions.record_phase(row, state)
    again = Allocation.objects.get(pk=row.pk)
    assert (again.phase, again.held_at) == (Phase.QUEUED, T0)


def test_a_row_whose_phase_changed_meanwhile_stays_as_it_is_and_gets_no_entry(row):
    Allocation.objects.filter(pk=row.pk).update(reason="something_else")
    transitions.record_phase(row, observed(row))
    again = Allocation.objects.get(pk=row.pk)
    assert (again.reason, timeline(again)) == ("something_else", [("requested", "", "queued")])
    assert row.reason == ""


def test_a_message_alone_is_no_entry(row):
    transitions.record_phase(row, observed(row))
    entries = timeline(row)
    Allocation.objects.filter(pk=row.pk).update(message="something else")
    again = spec_of_row.rows().get(pk=row.pk)
    transitions.record_phase(again, observed(again))
    assert timeline(row) == entries
    assert Allocation.objects.get(pk=row.pk).message == row.message
