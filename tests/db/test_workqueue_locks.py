"""Advisory locks between real sessions of PostgreSQL."""

import threading

import pytest
from django.db import connection, transaction

from portal.core.errors import Retryable
from portal.core.locks import advisory_lock, lock_id
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
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
