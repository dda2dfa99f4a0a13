from datetime import timedelta

import pytest
import redis
from django.db import OperationalError
from django.test import Client

from portal import health
from portal.core import clock, heartbeat
from portal.http import counters
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.clusters import LOCAL
from tests.support.people import client, person


def test_livez_asks_nobody():
    assert Client().get("/livez").content == b"ok"


@pytest.mark.django_db
def test_readyz_is_ready_when_all_work():
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert set(answer.json()["checks"].values()) == {"ok"}


@pytest.mark.django_db
def test_readyz_looks_once_a_second_whoever_asks(monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(health, "LOOK_EVERY_S", 60)
    monkeypatch.setattr(health, "_readiness", health.Readiness(False, {}, 0.0))
    first = Client().get("/readyz")
    with django_assert_num_queries(0):
        again = Client().get("/readyz")
    assert (again.status_code, again.json()) == (first.status_code, first.json())


@pytest.mark.django_db
def test_readyz_is_degraded_when_a_worker_is_silent_or_redis_gone(monkeypatch):
    heartbeat.beat("worker")

    class Gone:
        def ping(self):
            raise redis.ConnectionError("gone")

    monkeypatch.setattr(counters, "client", Gone)
    with clock.frozen(clock.now() + timedelta(minutes=5)):
        answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"] == {
        "database": "ok",
        "migrations": "ok",
        "redis": "does not answer",
        "worker": "silent for 300 s",
        "watcher": "has not been seen",
        "cluster_store": "ok",
    }


def test_readyz_is_503_without_a_database(monkeypatch):
    def refuse(connection):
        raise OperationalError("gone")

    monkeypatch.setattr(health, "MigrationExecutor", refuse)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "unready")


@pytest.mark.django_db
def test_metrics_tell_how_far_the_work_is_behind(settings):
    settings.METRICS_TOKEN = "scrape-me"
    now = clock.now()
    workqueue.enqueue(targets.platform(LOCAL), at=now - timedelta(seconds=30))
    heartbeat.beat("worker")
    with clock.frozen(now):
        text = Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}).content.decode()
    assert "gpu_portal_due_targets 1.0" in text
    assert "gpu_portal_due_lag_seconds 30.0" in text
    assert 'gpu_portal_heartbeat_age_seconds{process="worker"}' in text


def test_without_a_metrics_token_there_are_no_metrics(settings):
    settings.METRICS_TOKEN = ""
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}):
        assert Client().get("/metrics", headers=headers).status_code == 404


@pytest.mark.django_db
def test_metrics_are_for_who_has_their_token_alone(settings, team):
    settings.METRICS_TOKEN = "scrape-me"
    wrong = (
        "",
        "Bearer",
        "Bearer scrape",
        "Bearer scrape-me-too",
        "Basic scrape-me",
        "scrape-me",
        "Bearer schöpf-mich",
    )
    for words in wrong:
        answer = Client().get("/metrics", headers={"Authorization": words})
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="gpu-portal metrics"')
        assert b"gpu_portal_" not in answer.content
    assert client(person(team)).get("/metrics").status_code == 401
    signed_in = Client()
    signed_in.force_login(person(platform_role="operator"))
    assert signed_in.get("/metrics").status_code == 401


def test_a_plain_request_id_comes_back_and_any_other_is_replaced():
    assert Client().get("/livez", headers={"X-Request-ID": "abc-1"})["X-Request-ID"] == "abc-1"
    assert Client().get("/livez", headers={"X-Request-ID": "a\tb"})["X-Request-ID"] != "a\tb"


def test_pages_may_load_nothing_from_elsewhere_and_no_inline_script():
    policy = Client().get("/api/docs")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    page = Client().get("/api/docs").content.decode()
    assert "<style" not in page
    assert "<script>" not in page


@pytest.mark.django_db
def test_the_schema_is_openapi_3_1_and_names_the_routes(team):
    schema = client(person(team)).get("/api/v1/schema").json()
    assert schema["openapi"] == "3.1.0"
    assert {"/api/v1/me", "/api/v1/tokens", "/api/v1/projects"} <= set(schema["paths"])
