"""What a client costs that repeats what was just refused: nothing is looked up for it any more."""

from datetime import timedelta
from itertools import count
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.http import counters, early_refusals, person_limits
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
NOBODYS = UUID(int=1)
"""The id of no allocation."""
NOW = 1_000_000_013.0
addresses = (f"198.51.100.{number}" for number in count(1))


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """One window of all limits; `clock` moves it."""
    monkeypatch.setattr(counters, "_paused_until", 0.0)

    def move(seconds):
        monkeypatch.setattr("portal.http.counters.time.time", lambda: NOW + seconds)

    move(0)
    return move


@pytest.fixture
def busy(settings, team):
    """Return a person who has used up the limit of processor time."""
    settings.PROCESSOR_SECONDS_PER_MINUTE = 10
    member = person(team)
    counters.add(f"processor-ms:{member.pk}", 5_000, person_limits.WINDOW_S)
    return member


def counted(ask):
    """Return the answer to the last of more requests than are refused in full, and the number of its SQL queries."""
    for _ in range(early_refusals.PATIENCE):
        assert ask().status_code == 429
    with CaptureQueriesContext(connection) as queries:
        answer = ask()
    return answer, len(queries)


def test_rest_requests_of_who_does_not_wait_are_refused_without_a_query(busy):
    rest = client(busy)
    answer, queries = counted(lambda: rest.get("/api/v1/offerings"))
    assert (answer.status_code, queries) == (429, 0)
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:gpu-portal:problem:throttled"
    assert 0 < int(answer["Retry-After"]) <= person_limits.WINDOW_S
    with CaptureQueriesContext(connection) as others:
        assert rest.post("/api/v1/allocations", {}, format="json").status_code == 429
    assert len(others) == 0


def test_rest_requests_are_refused_without_a_query_from_the_second_refusal_on(busy):
    rest = client(busy)
    first = rest.get("/api/v1/offerings")
    with CaptureQueriesContext(connection) as queries:
        second = rest.get("/api/v1/offerings")
    assert (first.status_code, second.status_code, len(queries)) == (429, 429, 0)
    assert first.json() == second.json()


def test_the_first_pages_of_who_does_not_wait_take_only_session_and_person(busy, django_assert_num_queries):
    browser = browser_of(busy)
    with django_assert_num_queries(2):
        assert browser.get("/prices").status_code == 429


def test_who_writes_the_same_token_in_other_ways_is_still_the_same(busy):
    _, token = services.issue_token(SYSTEM, busy, "test", [Scope.READ], timedelta(days=1))
    rest = APIClient()
    counted(lambda: rest.get("/api/v1/me", HTTP_AUTHORIZATION=f"Bearer {token}"))
    for header in (f"bearer {token}", f"Bearer  {token} "):
        for cookie in ("one", "another"):
            rest.cookies["sessionid"] = cookie
            with CaptureQueriesContext(connection) as queries:
                assert rest.get("/api/v1/me", HTTP_AUTHORIZATION=header).status_code == 429
            assert len(queries) == 0


def test_pages_of_who_does_not_wait_are_refused_in_one_line_without_a_query(busy):
    browser = browser_of(busy)
    answer, queries = counted(lambda: browser.get("/request"))
    assert (answer.status_code, queries) == (429, 0)
    sentence = "Your requests took more than 5.0 seconds of processor time within 30 seconds."
    assert answer.content.decode() == f"{sentence} Try again in {answer['Retry-After']} seconds.\n"
    with CaptureQueriesContext(connection) as others:
        assert browser.get(f"/teams/team-{uuid4().hex}").status_code == 429
    assert len(others) == 0


def test_the_first_refusals_are_whole_pages_and_what_is_not_counted_is_never_refused(busy):
    browser = browser_of(busy)
    for _ in range(early_refusals.PATIENCE):
        assert "<html" in browser.get("/request").content.decode()
    assert "<html" not in browser.get("/request").content.decode()
    assert browser.get("/no-such-page").status_code == 404
    assert browser.get("/livez").status_code == 200
    assert browser.post("/logout").status_code == 302


@pytest.mark.parametrize("path", ["/", "/allocations", f"/allocations/{NOBODYS}", f"/allocations/{NOBODYS}/release"])
def test_what_other_pages_took_keeps_nobody_from_home_and_from_what_one_holds(busy, path):
    browser = browser_of(busy)
    counted(lambda: browser.get("/costs"))
    assert browser.get(path).status_code in (200, 404)


def test_home_in_a_loop_is_refused_too_and_keeps_nobody_from_a_release(busy):
    counters.add(f"processor-ms:essential:{busy.pk}", 5_000, person_limits.WINDOW_S)
    browser = browser_of(busy)
    counted(lambda: browser.get("/"))
    assert browser.get(f"/allocations/{NOBODYS}/release").status_code == 404


def test_a_page_that_was_refused_says_that_it_loads_again_and_a_form_does_not(busy):
    browser = browser_of(busy)
    answer = browser.get("/costs")
    assert f'data-retry-s="{answer["Retry-After"]}"' in answer.content.decode()
    assert "data-retry-s" not in browser.post("/request").content.decode()


def test_others_of_the_same_address_are_answered(busy, team):
    other = person(team)
    rest = client(busy)
    counted(lambda: rest.get("/api/v1/me"))
    assert client(other).get("/api/v1/me").status_code == 200
    assert browser_of(other).get("/").status_code == 200


def test_who_waited_is_answered_again(busy, clock):
    rest = client(busy)
    answer, _ = counted(lambda: rest.get("/api/v1/me"))
    clock(int(answer["Retry-After"]) - 1)
    assert rest.get("/api/v1/me").status_code == 429
    clock(int(answer["Retry-After"]))
    assert rest.get("/api/v1/me").status_code == 200


def test_wrong_passwords_of_an_address_that_reached_its_limit_are_refused_without_a_query(settings, client):
    settings.LOGIN_FAILURES_PER_MINUTE = 0
    passwords, here, elsewhere = {"username": "nobody", "password": "wrong"}, next(addresses), next(addresses)
    answer, queries = counted(lambda: client.post("/login", passwords, REMOTE_ADDR=here))
    assert (answer.status_code, queries) == (429, 0)
    assert client.get("/login", REMOTE_ADDR=here).status_code == 200
    settings.LOGIN_FAILURES_PER_MINUTE = 30
    assert client.post("/login", passwords, REMOTE_ADDR=elsewhere).status_code == 200


def test_attempts_at_one_name_keep_nobody_else_of_the_address_out(settings, client):
    settings.LOGINS_PER_MINUTE, here = 1, next(addresses)
    named = {"username": "nobody", "password": "wrong"}
    for status in (200, *[429] * (early_refusals.PATIENCE + 2)):
        assert client.post("/login", named, REMOTE_ADDR=here).status_code == status
    assert client.post("/login", {**named, "username": "other"}, REMOTE_ADDR=here).status_code == 200


def test_as_many_clients_are_remembered_as_there_is_room_for(busy, team, settings, monkeypatch):
    monkeypatch.setattr(early_refusals, "REMEMBERED", 2)
    for _ in range(3):
        assert client(busy).get("/api/v1/me").status_code == 429
    assert len(early_refusals._refusals) == 2
