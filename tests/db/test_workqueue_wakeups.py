"""Wake-ups through a real broker that is up, down, hanging, and back."""

import json
import socket
import time

import pytest
import redis as redis_client
from celery import current_app

from portal.workqueue import queue, targets, wakeups
from tests import services
from tests.support.clusters import LOCAL


@pytest.fixture
def broker(monkeypatch):
    """Send wake-ups to the broker at `url`, and treat it as available."""

    def use(url):
        monkeypatch.setattr(current_app.conf, "broker_url", url)
        monkeypatch.setattr(current_app.conf, "broker_write_url", url)
        monkeypatch.setattr(wakeups, "_paused_until", 0.0)
        wakeups._connection.cache_clear()

    yield use
    wakeups._connection.cache_clear()


def test_a_hint_names_the_task_and_the_target(broker, tmp_path):
    with services.redis(tmp_path) as url:
        broker(url)
        wakeups.send(["platform"])
        stored = redis_client.Redis.from_url(url).lindex("celery", 0)
    message = json.loads(stored or "null")
    assert message["headers"]["task"] == "workqueue.reconcile"
    assert message["headers"]["argsrepr"] == "['platform']"


def test_many_hints_are_sent_together(broker, tmp_path):
    with services.redis(tmp_path) as url:
        broker(url)
        wakeups.send(["platform"])

        with redis_client.Redis.from_url(url) as redis:
            before = redis.info("stats")["total_reads_processed"]
            wakeups.send([f"local/project:p-{number}" for number in range(20)])
            reads = redis.info("stats")["total_reads_processed"] - before
            assert redis.llen("celery") == 21
    assert reads < 10  # Redis reads at most 16 KiB at once


def test_a_broker_that_hangs_costs_about_a_second_once(broker):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(50)
        broker(f"redis://127.0.0.1:{deaf.getsockname()[1]}/0")
        start = time.monotonic()
        for _ in range(100):
            wakeups.send(["platform"])
        assert time.monotonic() - start < 3


def test_hints_flow_again_when_the_broker_is_back(broker, tmp_path, monkeypatch):
    port = services.free_port()
    with services.redis(tmp_path, port) as url:
        broker(url)
        wakeups.send(["platform"])
    wakeups.send(["platform"])
    assert wakeups._paused_until > time.monotonic()
    monkeypatch.setattr(wakeups, "_paused_until", 0.0)
    with services.redis(tmp_path, port) as url:
        wakeups.send(["platform", "inventory"])
        assert redis_client.Redis.from_url(url).llen("celery") == 2


@pytest.mark.django_db(transaction=True)
def test_what_one_person_does_goes_before_what_concerns_every_project(broker, tmp_path):
    with services.redis(tmp_path) as url:
        broker(url)
        queue.enqueue(*(targets.project(LOCAL, f"p-{number}") for number in range(queue.MANY)))
        queue.enqueue(targets.project(LOCAL, "new"))
        with current_app.connection_for_read(url) as connection:
            task = connection.SimpleQueue("celery")
            first, second = (task.get(timeout=5).payload[0][0] for _ in range(2))
            task.close()
    assert (first, second[:16]) == ("local/project:new", "local/project:p-")


def test_messages_of_all_priorities_are_counted_as_waiting(broker, tmp_path):
    with services.redis(tmp_path) as url:
        broker(url)
        assert wakeups.waiting() == 0
        wakeups.send(["platform"], priority=wakeups.FIRST)
        wakeups.send(["inventory", "platform"], priority=wakeups.LAST)
        assert wakeups.waiting() == 3


def test_a_broker_that_is_away_says_so_when_messages_are_counted(broker):
    broker(f"redis://127.0.0.1:{services.free_port()}/0")
    with pytest.raises(wakeups.FAILURES):
        wakeups.waiting()
