"""The number of allocations that a project and each person in it may have: live ones, and separately scheduled
ones.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections

from allocations.domain.admission import LIVE_PER_PROJECT
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.objects import Snapshot
from allocations.domain.phases import Phase
from allocations.lifecycle import slot_numbers, spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import recovery
from allocations.requests.preview import preview_request
from portal.core import clock
from portal.core.errors import Refused
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.tenants.project_options import ProjectOptions
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import mirror_lease
from tests.support.people import person

pytestmark = pytest.mark.django_db
TOMORROW = timedelta(days=1)


@pytest.fixture(autouse=True)
def _fleet(team: Team) -> None:
    fleet(team)


@pytest.fixture
def small(settings: Any) -> None:
    settings.LIVE_PER_MEMBER, settings.SCHEDULED_PER_MEMBER, settings.SCHEDULED_PER_PROJECT = 2, 2, 3


def schedule(user: User, project: Project, **fields: Any) -> Allocation:
    return allocate(user, project, starts_at=clock.now() + TOMORROW, **fields)


def many(user: User, project: Project, numbered: Iterator[int]) -> list[Allocation]:
    """Create live allocations with these numbers, as rows."""
    model, now = allocate(user, project), clock.now()
    Allocation.objects.filter(pk=model.pk).update(desired="released", ended_at=now, outcome="cancelled")
    kept = {field.attname: getattr(model, field.attname) for field in Allocation._meta.concrete_fields}
    rows = [Allocation(**{**kept, "id": None, "name": f"live-{n}", "number": n}) for n in numbered]
    for row in rows:
        row.id = Allocation._meta.pk.get_default()
    return Allocation.objects.bulk_create(rows)


def end(row: Allocation) -> None:
    Allocation.objects.filter(pk=row.pk).update(desired="released", ended_at=clock.now(), outcome="released")


def refused(user: User, project: Project, **fields: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        allocate(user, project, **fields)
    return caught.value


def started(row: Allocation) -> Allocation:
    """Return the row with a start that has passed."""
    Allocation.objects.filter(pk=row.pk).update(starts_at=clock.now() - timedelta(seconds=1))
    return spec_of_row.rows().get(pk=row.pk)


def test_what_is_scheduled_takes_no_number_until_it_starts(team, project) -> None:
    row = schedule(person(team), project)
    assert (row.phase, row.number) == (Phase.SCHEDULED, None)
    assert allocate(person(team), project, name="now").number == 0
    assert slot_numbers.assign(started(row)) == ""
    row.refresh_from_db()
    assert row.number == 1


def test_scheduled_requests_leave_the_live_ones_their_places(team, project, small) -> None:
    member = person(team)
    for _ in range(2):
        schedule(member, project)
    assert allocate(member, project).phase == Phase.QUEUED


def test_a_member_schedules_up_to_a_limit_of_his_own(team, project, small) -> None:
    member = person(team)
    for _ in range(2):
        schedule(member, project)
    problem = refused(member, project, starts_at=clock.now() + TOMORROW)
    assert problem.reason == "limit_exceeded"
    assert [(one.dimension, one.limit, one.used) for one in problem.violations] == [("member:scheduled", 2, 2)]
    assert (
        problem.detail == "You have 2 scheduled allocations in the project that wait for their start; the limit is 2."
    )
    assert problem.hint == "Cancel one of them, or ask again when one of them has started."
    assert schedule(person(team), project).phase == Phase.SCHEDULED


def test_a_project_schedules_up_to_a_limit_of_its_own(team, project, small) -> None:
    for _ in range(3):
        schedule(person(team), project)
    problem = refused(person(team), project, starts_at=clock.now() + TOMORROW)
    assert [(one.dimension, one.limit, one.used) for one in problem.violations] == [("project:scheduled", 3, 3)]


def test_cancelling_one_makes_room_for_another(team, project, small) -> None:
    member = person(team)
    first, _ = schedule(member, project), schedule(member, project)
    refused(member, project, starts_at=clock.now() + TOMORROW)
    end(first)
    assert schedule(member, project).phase == Phase.SCHEDULED


def test_a_member_alone_cannot_take_all_numbers(team, project, small) -> None:
    member = person(team)
    for _ in range(2):
        allocate(member, project)
    problem = refused(member, project)
    assert [(one.dimension, one.limit, one.used) for one in problem.violations] == [("member:allocations", 2, 2)]
    assert problem.detail == "You have 2 allocations in the project that have not ended; the limit is 2."
    assert allocate(person(team), project).number == 2


def test_a_member_has_the_same_limit_in_each_project(team, project, small) -> None:
    member, other = (
        person(team),
        tenants.create_project(SYSTEM, team, "vision-eval", "Eval", ProjectOptions(namespace="v-eval")),
    )
    for _ in range(2):
        allocate(member, project)
    assert allocate(member, other).number == 0


def test_a_full_project_is_told_its_limit(team, project, settings) -> None:
    settings.LIVE_PER_MEMBER = 1000
    many(person(team), project, iter(range(LIVE_PER_PROJECT)))
    problem = refused(person(team), project)
    assert [(one.dimension, one.limit) for one in problem.violations] == [("project:allocations", LIVE_PER_PROJECT)]


def test_the_preview_says_it_before_and_offers_no_later_start_that_would_be_refused(team, project, small) -> None:
    member = person(team)
    for _ in range(2):
        schedule(member, project)
    spec = AllocationRequest(project=project.slug, offering="l40s/whole", starts_at=clock.now() + TOMORROW)
    seen = preview_request(member, spec)
    assert (seen.fits, [one.dimension for one in seen.violations]) == ("never", ["member:scheduled"])
    assert not [one for one in preview_request(member, replace(spec, starts_at=None)).alternatives if one.starts_at]


def test_what_starts_while_all_numbers_are_taken_waits_and_says_so(team, project, settings) -> None:
    settings.LIVE_PER_MEMBER = 1000
    row = schedule(person(team), project)
    many(person(team), project, iter(range(LIVE_PER_PROJECT)))
    row = started(row)
    why = slot_numbers.assign(row)
    assert (row.number, why.split(";")[0]) == (None, "The project has 250 live allocations")
    asked, intent = spec_of_row.resolved_spec(row), replace(spec_of_row.intent(row), number_wait=why)
    situation = hold.assess(asked, intent, Snapshot(), {}, clock.now(), spec_of_row.deadlines(row))
    assert not situation.queues
    assert not hold.desired_state(asked, situation, Snapshot(), {}).objects
    assert hold.wake_at(asked, intent, situation) == situation.facts.now + hold.NUMBER_RETRY
    transitions.record_phase(row, situation)
    row.refresh_from_db()
    assert (row.phase, row.reason, row.message) == (Phase.QUEUED, "allocation_limit", why)


def test_what_starts_counts_against_its_members_live_ones(team, project, small) -> None:
    member = person(team)
    row = schedule(member, project)
    for _ in range(2):
        allocate(member, project)
    assert slot_numbers.assign(started(row)).startswith(
        "Its member has 2 live allocations in the project; the limit is 2."
    )


def test_the_end_of_a_live_one_has_the_first_of_each_member_that_waits_looked_at(team, project, small) -> None:
    first, second, other = (schedule(one, project) for one in [person(team)] * 2 + [person(team)])
    live = allocate(person(team), project)
    for row in (first, second, other):
        started(row)
    Allocation.objects.filter(pk=second.pk).update(starts_at=clock.now())
    WorkItem.objects.all().delete()
    Allocation.objects.filter(pk=live.pk).update(desired="released", ending="person")
    row = spec_of_row.rows().get(pk=live.pk)
    situation = hold.assess(
        spec_of_row.resolved_spec(row), spec_of_row.intent(row), Snapshot(), {}, clock.now(), spec_of_row.deadlines(row)
    )
    transitions.record_phase(row, situation)
    assert row.phase == Phase.ENDED
    assert set(WorkItem.objects.values_list("target", flat=True)) == {
        f"local/allocation:{one.pk}" for one in (first, other)
    }


def test_after_a_restore_the_number_that_the_lease_has_is_given_whatever_is_full(team, project, small) -> None:
    member = person(team)
    row = schedule(member, project)
    for _ in range(2):
        allocate(member, project)
    row = started(row)
    row.number = 1
    mirror_lease(row)
    recovery.adopt(LOCAL, project.namespace)
    assert list(Allocation.objects.order_by("number").values_list("number", flat=True)) == [0, 1, 2]
    row.refresh_from_db()
    assert row.number == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_for_the_last_place_one_is_refused(team, project, small) -> None:
    member, together = person(team), Barrier(2)
    schedule(member, project)
    said: list[str] = []

    def ask() -> None:
        try:
            together.wait(10)
            said.append(schedule(member, project).phase)
        except Refused as problem:
            said.append(problem.reason)
        finally:
            connections.close_all()

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(said) == ["limit_exceeded", Phase.SCHEDULED]
