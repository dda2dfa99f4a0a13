"""Events: one for each thing that happens, in an order in which none is skipped, for whoever may see it now."""

import random
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from allocations.domain.objects import Snapshot
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.assessment import assess
from allocations.models import Allocation, Transition
from allocations.requests import services
from portal.audit.entries import audit
from portal.core import clock
from portal.core.models import AuditEntry
from portal.events import reading
from portal.events.models import Event
from portal.tenants import event_access, members
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from tests.support import sizes
from tests.support.fleet import allocate, fleet
from tests.support.people import person

NOW = clock.now()
WITHIN_S = 60.0


@pytest.fixture
def row(team: Team, project: Project, member: User) -> Allocation:
    fleet(team)
    Event.objects.all().delete()
    return spec_of_row.rows().get(pk=allocate(member, project, name="train").pk)


def told() -> list[tuple[str, str]]:
    return list(Event.objects.order_by("id").values_list("kind", "actor"))


def audited(target: str, team: str = "") -> None:
    audit("ada", "limit.set", target, team=team)


@pytest.mark.django_db
def test_an_audit_entry_and_its_event_are_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        audited("vision/h100", team="vision")
    event, entry = Event.objects.get(), AuditEntry.objects.get()
    assert (event.audit_entry, event.transition) == (entry.pk, None)
    assert (event.kind, event.actor, event.subject, event.team) == ("limit.set", "ada", "vision/h100", "vision")
    assert (event.at, event.scope) == (entry.at, "audit")


@pytest.mark.django_db
def test_what_people_do_to_an_allocation_is_told_once(row: Allocation, member: User) -> None:
    services.extend(member, row, 2)  # type: ignore[arg-type]  # any number of hours
    services.release(member, row)
    actor = member.username
    assert told() == [
        ("allocation.requested", actor),
        ("allocation.extended", actor),
        ("allocation.end", actor),
        ("allocation.releasing", "portal"),
    ]


@pytest.mark.django_db
def test_each_entry_of_a_timeline_has_an_event_that_refers_to_it(row: Allocation, member: User) -> None:
    transitions.record_phase(row, assess(row, Snapshot()))
    services.release(member, row)
    transitions.record_phase(row, assess(Allocation.objects.get(pk=row.pk), Snapshot()))
    events = Event.objects.order_by("id")
    assert list(events.values_list("transition", flat=True)) == list(Transition.objects.values_list("id", flat=True))
    for event, entry in zip(events, Transition.objects.select_related("allocation__project__team"), strict=True):
        names = ("at", "kind", "actor", "subject", "project", "team", "cluster", "scope")
        expected = transitions.event_of(entry)
        assert {name: getattr(event, name) for name in names} == {name: getattr(expected, name) for name in names}


@pytest.mark.django_db
def test_who_sees_a_project_sees_its_events_as_long_as_that_lasts(
    row: Allocation, team: Team, other_team: Team, member: User
) -> None:
    viewer, stranger = person(team, "viewer"), person(other_team, "lead")
    staff = person(platform_role="auditor")
    audited("vision/h100", team="vision")
    audited("h100")

    def seen(user: User) -> list[str]:
        return [event.kind for event in event_access.visible(user)]

    assert seen(viewer) == seen(member) == ["allocation.requested"]
    assert seen(person(team, "lead")) == ["allocation.requested", "member.set", "limit.set", "member.set"]
    assert "allocation.requested" not in seen(stranger)
    assert {"allocation.requested", "limit.set"} <= set(seen(staff))
    members.remove(SYSTEM, team, viewer.username)
    assert seen(viewer) == []


@pytest.mark.django_db
def test_old_events_are_deleted_and_their_records_stay(row: Allocation) -> None:
    Event.objects.update(at=NOW - timedelta(days=31))
    audited("h100")
    assert reading.purge() == 1
    assert [event.kind for event in Event.objects.all()] == ["limit.set"]
    assert row.transitions.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_another_postgresql_wrote_is_the_first_in_order_after_a_restore() -> None:
    audited("before")
    Event.objects.update(transaction=2**60)
    audited("after")
    reading.purge()
    assert [event.subject for event in reading.after(reading.START, Event.objects.all(), 10)] == ["before", "after"]


@pytest.mark.django_db(transaction=True)
def test_an_event_that_commits_late_is_not_skipped() -> None:
    wrote, may_commit = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            audited("late")
            wrote.set()
            may_commit.wait(WITHIN_S)
        connection.close()

    thread = threading.Thread(target=late)
    thread.start()
    assert wrote.wait(WITHIN_S)
    audited("early")
    assert reading.after(reading.START, Event.objects.all(), 10) == []
    may_commit.set()
    thread.join(WITHIN_S)
    assert [event.subject for event in reading.after(reading.START, Event.objects.all(), 10)] == ["late", "early"]


@pytest.mark.django_db(transaction=True)
def test_a_reader_beside_many_writers_gets_each_event_once() -> None:
    """Each writer's transactions write one to three events, with other statements between and after them; some are
    rolled back.
    """
    done = threading.Event()

    def write(seed: int) -> None:
        draw = random.Random(seed)
        for number in range(sizes.size(20, 200)):
            with transaction.atomic():
                for part in range(draw.randint(1, 3)):
                    audited(f"{seed}/{number}/{part}")
                    for _ in range(draw.randint(0, 4)):
                        AuditEntry.objects.count()
                transaction.set_rollback(draw.random() < 0.2)
        connection.close()

    def read() -> None:
        cursor = reading.START
        while True:
            is_last = done.is_set()
            while events := reading.after(cursor, Event.objects.all(), draw_limit.randint(1, 7)):
                cursor = reading.place(events[-1])
                found.extend(event.pk for event in events)
            if is_last:
                break
        connection.close()

    found: list[int] = []
    draw_limit = random.Random(7)
    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for writer in writers:
        writer.join(WITHIN_S)
    done.set()
    reader.join(WITHIN_S)
    assert len(found) == len(set(found))
    assert set(found) == set(Event.objects.values_list("pk", flat=True))
    assert list(Event.objects.order_by("transaction", "id").values_list("pk", flat=True)) == found
    assert not Event.objects.exclude(audit_entry__in=AuditEntry.objects.values("pk")).annotate(n=F("id")).exists()
