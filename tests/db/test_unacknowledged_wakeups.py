"""Messages that a worker has taken from a real broker and not acknowledged yet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client
from celery import current_app

from portal.workqueue import wakeups
from portal.workqueue.unacknowledged import WakeupQoS
from tests import services

QUEUE = "celery"
COPIES = "unacked"
"""Where kombu copies a message to when it is taken."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with services.redis(tmp_path) as found:
        monkeypatch.setattr(current_app.conf, "broker_url", found)
        monkeypatch.setattr(current_app.conf, "broker_write_url", found)
        monkeypatch.setattr(wakeups, "_paused_until", 0.0)
        wakeups._connection.cache_clear()
        yield found
    wakeups._connection.cache_clear()


@pytest.fixture
def channel(url: str) -> Iterator[Any]:
    """Return a channel as a worker has it."""
    with current_app.connection_for_read(url) as connection:
        channel: Any = connection.default_channel
        channel.QoS = WakeupQoS
        yield channel


@pytest.fixture
def broker(url: str) -> redis_client.Redis:
    return redis_client.Redis.from_url(url)


def take(channel: Any) -> Any:
    message = channel.basic_get(QUEUE)
    assert message is not None
    return message


def test_a_wakeup_that_was_taken_is_not_copied(channel: Any, broker: redis_client.Redis) -> None:
    wakeups.send(["platform"])
    message = take(channel)
    assert (broker.llen(QUEUE), broker.hlen(COPIES)) == (0, 0)
    message.ack()
    channel.qos.restore_unacked_once()
    assert broker.llen(QUEUE) == 0


def test_a_message_without_a_row_is_copied_until_it_is_done(channel: Any, broker: redis_client.Redis) -> None:
    current_app.send_task("core.sweep", connection=channel.connection.client)
    message = take(channel)
    assert broker.hlen(COPIES) == 1
    message.ack()
    assert broker.hlen(COPIES) == 0


def test_wakeups_count_for_the_prefetch_limit(channel: Any) -> None:
    channel.basic_qos(prefetch_count=1)
    wakeups.send(["platform", "inventory"])
    message = take(channel)
    assert not channel.qos.can_consume()
    message.ack()
    assert channel.qos.can_consume()


def test_a_wakeup_whose_process_was_killed_is_taken_again(channel: Any, broker: redis_client.Redis) -> None:
    wakeups.send(["platform"])
    take(channel).reject(requeue=True)
    again = take(channel)
    assert (again.headers["argsrepr"], again.headers["redelivered"]) == ("['platform']", True)
    again.reject()
    assert broker.llen(QUEUE) == 0


def test_a_worker_that_stops_gives_back_what_it_has_not_done(channel: Any, broker: redis_client.Redis) -> None:
    wakeups.send(["platform", "inventory"])
    current_app.send_task("core.sweep", connection=channel.connection.client)
    take(channel).ack()
    take(channel)
    take(channel)
    channel.close()
    assert (broker.llen(QUEUE), broker.hlen(COPIES)) == (2, 0)
