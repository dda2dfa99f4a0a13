"""Due times are the database's: a machine with a wrong clock neither delays nor repeats work."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from portal.core import clock
from portal.core.errors import Retryable
from portal.core.models import WorkItem
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.clusters import LOCAL

HOUR = timedelta(hours=1)
SOON = timedelta(seconds=20)
pytestmark = pytest.mark.django_db


@pytest.fixture(params=[-HOUR, HOUR], ids=["behind", "ahead"])
def wrong_clock(request):
    """Set this machine's clock wrong by an hour."""
    with clock.corrected(request.param):
        yield request.param


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def near(at: datetime, other: datetime) -> bool:
    return abs(at - other) < SOON


def test_a_mark_is_due_now_wherever_it_is_made(wrong_clock):
    workqueue.enqueue(targets.platform(LOCAL))
    assert near(WorkItem.objects.get().due_at, database_now())
    assert workqueue.lag_s() < SOON.total_seconds()
    assert [row.target for row in workqueue.overdue()] == ["local/platform"]
    assert workqueue.lease("local/platform") is not None


def test_a_lease_lasts_as_long_on_every_machine(wrong_clock, settings):
    workqueue.enqueue(targets.platform(LOCAL))
    taken = workqueue.lease("local/platform")
    assert taken is not None
    assert near(taken.until, database_now() + timedelta(seconds=settings.LEASE_S))
    assert workqueue.lease("local/platform") is None


def test_a_failed_look_comes_back_when_it_should(wrong_clock, settings):
    def fails(target):
        raise Retryable("busy", after_s=600)

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", fails)
    assert near(WorkItem.objects.get().due_at, database_now() + timedelta(seconds=600))


def test_a_look_sees_the_databases_time_and_is_not_repeated(wrong_clock):
    seen = []

    def look(target):
        seen.append(clock.now())
        return clock.now() + timedelta(minutes=5)

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", look)
    assert len(seen) == 1
    assert near(seen[0], database_now())
    assert near(WorkItem.objects.get().due_at, database_now() + timedelta(minutes=5))


def test_a_look_for_a_time_is_never_made_before_it(wrong_clock):
    """Otherwise it would find nothing to do, request the same time, and run again at once."""
    begins, seen = database_now(), []

    def look(target):
        seen.append(clock.now() >= begins)
        return None if seen[-1] else begins

    workqueue.enqueue(targets.platform(LOCAL), at=begins)
    workqueue.process("local/platform", look)
    assert seen == [True]


def test_after_the_look_the_machine_has_its_own_clock_again(wrong_clock):
    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", lambda target: None)
    assert near(clock.now(), datetime.now(UTC) + wrong_clock)


def test_a_mark_in_a_long_transaction_is_due_from_its_statement_on(transactional_db):
    began = database_now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.2)")
    workqueue.enqueue(targets.platform(LOCAL))
    assert WorkItem.objects.get().due_at >= began + timedelta(seconds=0.2)


def test_each_step_is_one_statement(django_assert_num_queries):
    with django_assert_num_queries(1):
        workqueue.enqueue(targets.platform(LOCAL), targets.inventory(LOCAL))
    with django_assert_num_queries(1):
        taken = workqueue.lease("local/platform")
    assert taken is not None
    with django_assert_num_queries(1):
        workqueue.fail(taken, Retryable("busy"))
