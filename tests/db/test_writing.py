"""Rows of several tables that are written in one statement."""

import pytest
from django.db import IntegrityError, transaction

from allocations.lifecycle import transitions
from allocations.models import Allocation, Transition
from portal.core import clock
from portal.core.models import Heartbeat, WorkItem
from portal.core.writing import write_rows
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_rows_and_statements_are_written_in_one_query(django_assert_num_queries):
    beat = Heartbeat(name="worker", at=clock.now())
    with django_assert_num_queries(1):
        (enqueued,) = write_rows([beat], workqueue.enqueue_statement(targets.platform(LOCAL)))
    assert [(one.target, one.is_idle) for one in enqueued] == [(targets.platform(LOCAL), True)]
    assert Heartbeat.objects.get(pk=beat.pk).at == beat.at
    assert WorkItem.objects.get().target == targets.platform(LOCAL)


def test_rows_may_refer_to_each_other(team, project):
    fleet(team)
    row = allocate(person(team), project)
    kept = {field.attname: getattr(row, field.attname) for field in Allocation._meta.concrete_fields}
    copy = Allocation(**{**kept, "id": Allocation._meta.pk.get_default(), "name": "copy", "number": 7})
    write_rows([copy, transitions.transition(copy, "requested", actor="ada")])
    read = Allocation.objects.get(pk=copy.pk)
    written = {field.attname: getattr(read, field.attname) for field in Allocation._meta.concrete_fields}
    assert written == {**kept, "id": copy.pk, "name": "copy", "number": 7}
    assert Transition.objects.get(allocation=copy).actor == "ada"
    copy.message = "It is a row like any other."
    copy.save()
    assert Allocation.objects.get(pk=copy.pk).message == copy.message


def test_of_rows_of_which_one_is_refused_none_is_written():
    beats = [Heartbeat(name=name, at=clock.now()) for name in ("worker", "watcher", "worker")]
    with pytest.raises(IntegrityError), transaction.atomic():
        write_rows(beats)
    assert not Heartbeat.objects.exists()
