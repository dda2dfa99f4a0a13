"""The phase of a row and the entries of its timeline change together."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.domain.objects import Snapshot
from allocations.domain.phases import LeaseFacts, Phase
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from portal.core import clock
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
