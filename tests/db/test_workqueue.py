"""The durable work queue: targets, leases, retries, and its behaviour without a broker."""

from datetime import UTC, datetime, timedelta

import pytest
import structlog
from celery import current_app
from kombu.exceptions import OperationalError

from portal.core import clock
from portal.core.errors import Retryable
from portal.core.models import WorkItem
from portal.workqueue import queue as workqueue
from portal.workqueue import targets, wakeups
from tests.support.clusters import LOCAL

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon():
    with clock.frozen(NOON):
        yield


@pytest.fixture(autouse=True)
def broker_is_believed(monkeypatch):
    monkeypatch.setattr(wakeups, "_paused_until", 0.0)


@pytest.fixture
def sent(monkeypatch):
    """Return the wake-ups that a broker would get."""
    found = []
    monkeypatch.setattr(current_app, "send_task", lambda name, args, **options: found.append((name, *args)))
    return found


def later(minutes):
    return NOON + timedelta(minutes=minutes)


def test_a_mark_never_moves_a_look_further_away():
    workqueue.enqueue(targets.platform(LOCAL), at=later(5))
    workqueue.enqueue(targets.platform(LOCAL), at=later(9))
    assert WorkItem.objects.get().due_at == later(5)
    workqueue.enqueue(targets.platform(LOCAL), at=later(2))
    assert WorkItem.objects.get().due_at == later(2)


def test_the_hint_is_sent_after_the_commit_and_once_for_each_target(sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        workqueue.enqueue(targets.platform(LOCAL), targets.inventory(LOCAL), targets.platform(LOCAL))
        assert sent == []
    assert sent == [("workqueue.reconcile", "local/inventory"), ("workqueue.reconcile", "local/platform")]


def test_what_is_due_later_sends_no_hint(sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        workqueue.enqueue(targets.platform(LOCAL), at=later(1))
    assert sent == []


def test_without_a_broker_the_mark_stands_and_the_next_hints_do_not_wait(
    monkeypatch, django_capture_on_commit_callbacks
):
    tries = []

    def refuse(*args, **options):
        tries.append(args)
        raise OperationalError("no broker")

    monkeypatch.setattr(current_app, "send_task", refuse)
    for target in (targets.platform(LOCAL), targets.inventory(LOCAL)):
        with django_capture_on_commit_callbacks(execute=True):
            workqueue.enqueue(target)
    assert len(tries) == 1
    assert WorkItem.objects.count() == 2


def test_only_one_worker_gets_a_target():
    workqueue.enqueue(targets.platform(LOCAL))
    assert workqueue.lease("local/platform") is not None
    assert workqueue.lease("local/platform") is None


def test_a_target_that_is_not_due_is_not_taken():
    workqueue.enqueue(targets.platform(LOCAL), at=later(1))
    assert workqueue.lease("local/platform") is None
    assert workqueue.lease("local/inventory") is None


def test_a_lease_runs_out_when_its_worker_dies(settings):
    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.lease("local/platform")
    with clock.frozen(NOON + timedelta(seconds=settings.LEASE_S)):
        assert workqueue.lease("local/platform") is not None


def test_who_comes_back_after_its_lease_ran_out_takes_nothing_from_who_has_it_now(settings):
    workqueue.enqueue(targets.platform(LOCAL))
    late = workqueue.lease("local/platform")
    assert late is not None
    with clock.frozen(NOON + timedelta(seconds=settings.LEASE_S)):
        taken = workqueue.lease("local/platform")
        assert taken is not None
        assert workqueue.finish(taken)
        workqueue.enqueue(targets.platform(LOCAL))
        assert workqueue.finish(late)
        workqueue.fail(late, Retryable("too late"))
        assert workqueue.lease("local/platform") is not None


def test_a_finished_look_leaves_nothing():
    workqueue.enqueue(targets.platform(LOCAL))
    assert workqueue.process("local/platform", lambda target: None)
    assert not WorkItem.objects.exists()


def test_a_finished_look_may_name_the_next_one():
    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", lambda target: later(30))
    assert WorkItem.objects.get().due_at == later(30)


@pytest.mark.parametrize("next_at", [None, NOON + timedelta(seconds=30)])
def test_a_look_takes_two_statements_of_the_queue(next_at, django_assert_num_queries):
    workqueue.enqueue(targets.platform(LOCAL))
    with django_assert_num_queries(2):
        workqueue.process("local/platform", lambda target: next_at)


def test_a_look_that_follows_a_mark_takes_one_statement_more(django_assert_num_queries):
    looks = []

    def look(target):
        looks.append(target)
        if len(looks) == 1:
            workqueue.enqueue(target)
        return later(30)

    workqueue.enqueue(targets.platform(LOCAL))
    with django_assert_num_queries(4):  # one is the mark
        workqueue.process("local/platform", look)
    assert len(looks) == 2


@pytest.mark.parametrize("at", [None, NOON + timedelta(hours=8)])
def test_a_mark_made_during_the_look_brings_another_look_at_once(at):
    looks = []

    def look(target):
        looks.append(target)
        if len(looks) == 1:
            workqueue.enqueue(target, at=at)

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", look)
    assert len(looks) == 2
    assert not WorkItem.objects.exists()


def test_a_target_that_is_marked_in_every_look_leaves_the_worker_to_others(sent):
    looks = []

    def look(target):
        looks.append(target)
        workqueue.enqueue(target)

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", look)
    assert len(looks) == workqueue.MAX_CONSECUTIVE_RUNS
    assert sent == [("workqueue.reconcile", "local/platform")]
    assert workqueue.lease("local/platform") is not None


def test_a_mark_made_during_the_look_waits_for_its_end_without_a_hint(sent, django_capture_on_commit_callbacks):
    workqueue.enqueue(targets.platform(LOCAL))
    taken = workqueue.lease("local/platform")
    assert taken is not None
    with django_capture_on_commit_callbacks(execute=True):
        workqueue.enqueue(targets.platform(LOCAL))
    assert sent == []
    assert workqueue.lease("local/platform") is None
    assert workqueue.sweep() == 0
    assert not workqueue.finish(taken)
    assert workqueue.lease("local/platform") is not None


def fails(target):
    raise Retryable("the API server does not answer")


def test_a_failed_look_comes_back_later_and_later(settings):
    at, waits = NOON, []
    workqueue.enqueue(targets.platform(LOCAL))
    for _ in range(12):
        with clock.frozen(at):
            workqueue.process("local/platform", fails)
            row = WorkItem.objects.get()
        waits.append((row.due_at - at).total_seconds())
        at = row.due_at
    assert row.attempts == 12
    assert row.error == "the API server does not answer"
    assert settings.RETRY_FIRST_S * 0.75 <= waits[0] <= settings.RETRY_FIRST_S
    assert settings.RETRY_MAX_S * 0.75 <= waits[-1] <= settings.RETRY_MAX_S


def test_a_failure_may_say_when_to_try_again():
    workqueue.enqueue(targets.platform(LOCAL))

    def asked(target):
        raise Retryable("busy", after_s=7)

    workqueue.process("local/platform", asked)
    assert WorkItem.objects.get().due_at == NOON + timedelta(seconds=7)


def test_an_unforeseen_error_is_kept_on_the_row_and_ends_there():
    workqueue.enqueue(targets.platform(LOCAL))

    def look(target):
        return 1 / 0

    workqueue.process("local/platform", look)
    assert WorkItem.objects.get().error == "division by zero"


def test_a_mark_made_during_a_failing_look_shortens_the_wait(settings):
    workqueue.enqueue(targets.platform(LOCAL))
    WorkItem.objects.update(attempts=10)

    def look(target):
        workqueue.enqueue(target)
        raise Retryable("not yet")

    workqueue.process("local/platform", look)
    assert WorkItem.objects.get().due_at == NOON + timedelta(seconds=settings.RETRY_FIRST_S)


def test_a_success_forgets_failures():
    workqueue.enqueue(targets.platform(LOCAL))
    WorkItem.objects.update(attempts=3, error="once upon a time")
    workqueue.process("local/platform", lambda target: later(1))
    assert (WorkItem.objects.get().attempts, WorkItem.objects.get().error) == (0, "")


def test_the_sweep_hints_at_what_is_due_longest_first(sent):
    workqueue.enqueue(targets.platform(LOCAL), at=NOON - timedelta(minutes=1))
    workqueue.enqueue(targets.inventory(LOCAL), at=NOON - timedelta(minutes=2))
    workqueue.enqueue(targets.project(LOCAL, "later"), at=later(1))
    assert workqueue.sweep() == 2
    assert [target for _, target in sent] == ["local/inventory", "local/platform"]
    assert workqueue.lag_s() == 120


def test_who_reconciles_a_target_knows_the_last_request_that_enqueued_it_and_passes_it_on():
    structlog.contextvars.clear_contextvars()  # of a request in an earlier test

    def enqueue_other(_):
        workqueue.enqueue(targets.inventory(LOCAL))

    for request_id in ("first", "second"):
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            workqueue.enqueue(targets.platform(LOCAL))
    workqueue.enqueue(targets.platform(LOCAL))  # as the watcher does
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        workqueue.process(targets.platform(LOCAL), enqueue_other)
    [line] = [line for line in lines if line["event"] == "workqueue.reconciled"]
    assert (line["target"], line["request_id"]) == (targets.platform(LOCAL), "second")
    assert WorkItem.objects.get(target=targets.inventory(LOCAL)).request_id == "second"
