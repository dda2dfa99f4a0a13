"""The limits on the requests of one person that run at once and on their processor time, REST and pages together."""

import time
from threading import Event, Thread
from uuid import uuid4

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from portal.http import counters, person_limits
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_window(monkeypatch):
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_013.0)


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_who_has_used_up_the_limit_is_told_how_long_to_wait_in_rest_and_pages_and_nobody_else_is(settings, team):
    settings.PROCESSOR_SECONDS_PER_MINUTE = 10
    busy, other = person(team), person(team)
    counters.add(f"processor-ms:{busy.pk}", 5_000, person_limits.WINDOW_S)
    answer = client(busy).get("/api/v1/me")
    assert (answer.status_code, answer.json()["reason"]) == (429, "throttled")
    assert "5.0 seconds of processor time within 30 seconds" in answer.json()["detail"]
    assert 0 < int(answer["Retry-After"]) <= person_limits.WINDOW_S
    assert browser_of(busy).get("/prices").status_code == 429
    assert client(other).get("/api/v1/me").status_code == 200


def test_what_requests_take_adds_up_over_rest_and_pages(settings, team):
    settings.PROCESSOR_SECONDS_PER_MINUTE = 100_000
    member = person(team)
    name = f"processor-ms:{member.pk}"

    def is_at_least(milliseconds):
        return counters.wait(name, milliseconds, person_limits.WINDOW_S) > 0

    assert not is_at_least(1)
    assert client(member).get("/api/v1/offerings").status_code == 200
    assert is_at_least(1)
    settings.PROCESSOR_SECONDS_PER_MINUTE = 0
    assert browser_of(member).get("/prices").status_code == 429


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_costs_what_it_took_to_make_also_one_that_is_streamed(settings, streams):
    settings.PROCESSOR_SECONDS_PER_MINUTE = 100_000
    request, nobody_else = RequestFactory().get("/"), uuid4().int

    def parts():
        work(0.05)
        yield b"first"
        work(0.05)
        yield b"second"

    def view(request):
        person_limits.admit(request, nobody_else)
        return StreamingHttpResponse(parts()) if streams else HttpResponse(b"".join(parts()))

    answer = person_limits.limit_client(view)(request)
    assert b"".join(answer) == b"firstsecond"
    assert counters.wait(f"processor-ms:{nobody_else}", 95, person_limits.WINDOW_S) > 0


def test_of_one_persons_requests_one_runs_eight_wait_and_the_next_is_refused(team):
    busy, other = person(team), person(team)
    running, enough, answers = Event(), Event(), []

    def view(request, user):
        person_limits.admit(request, user.pk)
        running.set()
        assert enough.wait(timeout=10)
        return HttpResponse()

    def send():
        answers.append(person_limits.limit_client(lambda request: view(request, busy))(RequestFactory().get("/")))

    first, *waiting = (Thread(target=send) for _ in range(9))
    first.start()
    running.wait(timeout=10)
    for thread in waiting:
        thread.start()
    assert client(other).get("/api/v1/me").status_code == 200
    deadline = time.monotonic() + 10
    while (refused := client(busy).get("/api/v1/me")).status_code != 429 and time.monotonic() < deadline:
        pass
    assert "Too many of your requests run" in refused.json()["detail"]
    assert int(refused["Retry-After"]) == 1
    enough.set()
    for thread in (first, *waiting):
        thread.join(timeout=10)
    assert [answer.status_code for answer in answers] == [200] * 9
    assert client(busy).get("/api/v1/me").status_code == 200


def test_who_waits_too_long_for_an_own_request_is_refused(team, monkeypatch):
    monkeypatch.setattr(person_limits, "WAIT_S", 0.05)
    busy = person(team)

    def view(request):
        person_limits.admit(request, busy.pk)
        return client(busy).get("/api/v1/me")

    answer = person_limits.limit_client(view)(RequestFactory().get("/"))
    assert answer.status_code == 429
