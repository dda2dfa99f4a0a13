"""Advisory locks between real sessions of PostgreSQL."""

import threading
from datetime import timedelta

import pytest
from django.db import InternalError, connection, transaction

from portal.core import clock
from portal.core.errors import Retryable
from portal.core.locks import Lock, advisory_lock, advisory_locks, lock_id
from portal.core.models import WorkItem
from portal.workqueue import controllers, targets
from portal.workqueue import queue as workqueue
from portal.workqueue.controllers import Controller
from portal.workqueue.targets import Target
from tests.support.clusters import LOCAL


@pytest.fixture
def held_elsewhere(transactional_db):
    """Have another session hold the lock `platform` until the event is set."""
    locked, release = threading.Event(), threading.Event()

    def hold():
        with advisory_lock("platform"):
            locked.set()
            release.wait(10)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert locked.wait(10)
    yield release
    release.set()
    thread.join(10)


def test_other_words_give_another_lock():
    assert lock_id("a", "bc") != lock_id("ab", "c")


def test_a_lock_held_elsewhere_is_a_reason_to_come_back(held_elsewhere):
    with pytest.raises(Retryable, match="platform"), advisory_lock("platform", wait_s=0.1):
        pass


def test_another_lock_is_free(held_elsewhere):
    with advisory_lock("inventory", wait_s=0.1):
        pass


def test_a_lock_is_free_when_the_block_ended(held_elsewhere):
    held_elsewhere.set()
    with advisory_lock("platform", wait_s=5):
        pass
    with advisory_lock("platform", wait_s=0.1):
        pass


def test_an_error_in_the_block_frees_the_lock(transactional_db):
    with pytest.raises(ZeroDivisionError), advisory_lock("platform"):
        _ = 1 / 0
    assert held_locks() == 0


def test_a_lock_taken_in_a_transaction_lasts_until_its_end(transactional_db):
    with transaction.atomic():
        with advisory_lock("platform"):
            pass
        assert held_locks() == 1
    assert held_locks() == 0


def test_waiting_leaves_no_timeout_behind(transactional_db):
    with advisory_lock("platform", wait_s=1), connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


def test_free_locks_are_taken_in_one_statement(transactional_db, django_assert_num_queries):
    with transaction.atomic():
        with django_assert_num_queries(1), advisory_locks(Lock(("limits",), shared=True), Lock(("live", "vision"))):
            pass
        assert held_locks() == 2
    assert held_locks() == 0


def test_locks_of_which_one_is_held_elsewhere_are_waited_for(held_elsewhere):
    release = threading.Timer(0.3, held_elsewhere.set)
    release.start()
    with transaction.atomic():
        with advisory_locks(Lock(("platform",)), Lock(("live", "vision"))):
            assert held_elsewhere.is_set()
        assert held_locks() >= 2
    release.join()


def held_locks():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        return cursor.fetchone()[0]


def test_of_eight_workers_one_gets_the_target(transactional_db):
    workqueue.enqueue(targets.platform(LOCAL))
    start, taken = threading.Barrier(8), []

    def work():
        start.wait(10)
        taken.append(workqueue.lease("local/platform"))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len([one for one in taken if one]) == 1
    assert len(taken) == 8


LOCK = lock_id("platform")


def look_again_later(target):
    return clock.now() + timedelta(minutes=1)


def look_in_vain(target):
    raise Retryable("not yet")


def look_that_is_marked(target):
    if not looks:
        workqueue.enqueue(targets.platform(LOCAL))
    looks.append(held_locks())


looks: list[int] = []


@pytest.mark.parametrize("look", [lambda target: None, look_again_later, look_in_vain, look_that_is_marked])
def test_the_lock_that_came_with_a_lease_is_held_during_the_look_and_free_afterwards(look, transactional_db):
    looks.clear()

    def locked(target):
        assert held_locks() == 1
        with advisory_lock("platform"):
            assert held_locks() == 1
        assert held_locks() == 1
        return look(target)

    workqueue.enqueue(targets.platform(LOCAL))
    assert workqueue.process("local/platform", locked, LOCK)
    assert not WorkItem.objects.exclude(error="").exclude(error="not yet").exists()
    assert held_locks() == 0


def test_the_lock_is_free_after_a_look_whose_lease_expired(transactional_db, settings):
    def long(target):
        WorkItem.objects.update(leased_until=None)

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", long, LOCK)
    assert held_locks() == 0


def test_the_lock_is_free_after_a_look_that_the_queue_could_not_record(transactional_db):
    def look(target):
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")

    workqueue.enqueue(targets.platform(LOCAL))
    with pytest.raises(InternalError, match="read-only"):
        workqueue.process("local/platform", look, LOCK)
    assert held_locks() == 0


def test_a_look_waits_for_a_lock_that_did_not_come_with_its_lease(held_elsewhere):
    def look(target):
        with advisory_lock("platform", wait_s=0.1):
            pass

    workqueue.enqueue(targets.platform(LOCAL))
    workqueue.process("local/platform", look, LOCK)
    assert "locked by someone else" in WorkItem.objects.get().error
    held_elsewhere.set()


@pytest.mark.parametrize(("locks", "count"), [(True, 1), (False, 0)])
@pytest.mark.parametrize("target", [f"{LOCAL}/noop:7a", f"{LOCAL}/noop", "noop:7a"])
def test_a_target_is_leased_with_the_lock_of_its_controller(target, locks, count, transactional_db, monkeypatch):
    def reconcile(parsed):
        taken.append((parsed.key, held_locks()))

    taken: list[tuple[str, int]] = []
    monkeypatch.setattr(controllers, "_controllers", {})
    controllers.register(Controller("noop", reconcile, locks=locks))
    workqueue.enqueue(Target(target))
    assert controllers.process(target)
    assert taken == [(targets.parse(target).key, count)]


def test_a_kind_has_one_controller(monkeypatch):
    monkeypatch.setattr(controllers, "_controllers", {})
    with pytest.raises(ValueError, match="noop has two controllers"):
        controllers.register(Controller("noop", print), Controller("noop", print, locks=False))


def test_a_target_without_a_controller_is_told_of_and_waits(transactional_db):
    workqueue.enqueue(Target("nothing:7"))
    assert controllers.process("nothing:7")
    assert WorkItem.objects.get().error == "no controller for nothing:7"
