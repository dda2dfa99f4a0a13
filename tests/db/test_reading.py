"""Rows of several tables in one statement."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.models import Heartbeat, WorkItem
from portal.core.reading import Columns, read_tables

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows():
    now = clock.now()
    WorkItem.objects.create(target="local/platform", due_at=now, updated_at=now, attempts=2)
    for name in ("worker", "watcher"):
        Heartbeat.objects.create(name=name, at=now)


def test_each_part_has_its_rows_and_columns_in_one_query(rows, django_assert_num_queries):
    items, beats = Columns(WorkItem.objects.all(), ("target", "attempts")), Columns(Heartbeat.objects.all(), ("name",))
    with django_assert_num_queries(1):
        found = read_tables(items, beats)
    assert found[0] == [["local/platform", 2]]
    assert sorted(found[1]) == [["watcher"], ["worker"]]


def test_conditions_and_their_parameters_stay_with_their_part(rows):
    soon = WorkItem.objects.filter(due_at__lt=clock.now() + timedelta(hours=1), target__startswith="100%")
    assert read_tables(Columns(soon, ("target",)), Columns(Heartbeat.objects.filter(name="worker"), ("name",))) == [
        [],
        [["worker"]],
    ]


def test_a_part_that_cannot_have_rows_is_empty(rows):
    none = WorkItem.objects.filter(target__in=[])
    assert read_tables(Columns(none, ("target",)), Columns(Heartbeat.objects.none(), ("name",))) == [[], []]
