import threading
import weakref

import pytest
import redis
from rest_framework.test import APIClient

from portal.http import counters
from tests.services import free_port
from tests.support.people import client, person


@pytest.fixture(autouse=True)
def redis_is_believed(monkeypatch):
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_007.0)  # no minute ends meanwhile


@pytest.mark.django_db
def test_too_many_requests_are_429_with_the_time_to_wait(settings, team):
    settings.API_REQUESTS_PER_MINUTE = 2
    api = client(person(team))
    assert [api.get("/api/v1/me").status_code for _ in range(3)] == [200, 200, 429]
    answer = api.get("/api/v1/me")
    assert 0 < int(answer["Retry-After"]) <= 61
    assert answer.json()["reason"] == "throttled"
    assert client(person(team)).get("/api/v1/me").status_code == 200


def test_200_at_once_are_counted_exactly(request):
    name, allowed = request.node.nodeid, []

    def use():
        for _ in range(25):
            allowed.append(counters.hit(name, 100) == 0)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allowed.count(True) == 100


def test_a_client_that_nobody_keeps_lives_while_it_counts(settings, monkeypatch, request):
    """Several threads create a client at the same time: the client of one is kept, the others disconnect when
    dropped.
    """
    made, alive, execute = [], [], redis.client.Pipeline.execute

    def fresh():
        one = redis.Redis.from_url(settings.REDIS_URL)
        made.append(weakref.ref(one))
        return one

    def watched(pipeline):
        alive.append(made[-1]() is not None)
        return execute(pipeline)

    monkeypatch.setattr(counters, "client", fresh)
    monkeypatch.setattr(redis.client.Pipeline, "execute", watched)
    assert counters.hit(request.node.nodeid, 1) == 0
    assert alive == [True]


def test_without_redis_nothing_is_limited_and_nobody_waits_twice(monkeypatch):
    asked = []

    class Gone:
        def pipeline(self, *, transaction):
            asked.append(1)
            raise redis.ConnectionError("gone")

    monkeypatch.setattr(counters, "client", Gone)
    assert [counters.hit("x", 0) for _ in range(3)] == [0, 0, 0]
    assert len(asked) == 1


def test_who_must_be_counted_hears_that_redis_is_away(settings, monkeypatch):
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(counters, "client", lambda: redis.Redis.from_url(settings.REDIS_URL))
    for ask in (counters.count, counters.wait, counters.count):
        with pytest.raises(counters.Unavailable):
            ask("x", 10)


def test_looking_how_long_to_wait_counts_nothing(request):
    name = request.node.nodeid
    assert [counters.wait(name, 1) for _ in range(3)] == [0, 0, 0]
    assert counters.count(name, 1) == 0
    assert 0 < counters.wait(name, 1) <= counters.WINDOW_S
    assert counters.wait(name, 2) == 0


@pytest.mark.django_db
def test_who_is_not_signed_in_gets_no_fresh_limit_by_a_forged_header(settings):
    settings.API_REQUESTS_PER_MINUTE = 2
    answers = [
        APIClient(REMOTE_ADDR="192.0.2.200").get("/api/v1/schema", headers={"X-Forwarded-For": f"203.0.113.{number}"})
        for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
