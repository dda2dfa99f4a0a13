"""Whoever is not signed in has a limit of processor time by address, and nobody who is signed in is kept out by it."""

from datetime import timedelta
from itertools import count

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.http import counters, person_limits
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
NOW = 1_000_000_013.0
addresses = (f"198.51.100.{number}" for number in count(1))


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """One window of the limit; `clock` moves it."""
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr(person_limits, "_exhausted", {})

    def move(seconds):
        monkeypatch.setattr("time.time", lambda: NOW + seconds)

    move(0)
    return move


@pytest.fixture
def exhausted(settings):
    """Return an address that has used up its processor time."""
    settings.ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE = 10
    address = next(addresses)
    counters.add(f"processor-ms:{address}", 5_000, person_limits.WINDOW_S)
    assert Client(REMOTE_ADDR=address).get("/login").status_code == 200  # whose end finds it exceeded
    return address


@pytest.mark.parametrize("path", ["/login", "/api/v1/schema", "/api/docs", "/no-such-page", "/api/v1/me", "/"])
def test_beyond_it_strangers_are_refused_without_a_query(exhausted, path):
    with CaptureQueriesContext(connection) as queries:
        answer = Client(REMOTE_ADDR=exhausted).get(path)
    assert (answer.status_code, len(queries)) == (429, 0)
    assert 0 < int(answer["Retry-After"]) <= person_limits.WINDOW_S
    assert "Requests from your address, of people who are not signed in" in answer.content.decode()
    assert answer["Content-Type"].startswith("application/problem+json" if "/api/" in path else "text/plain")


def test_who_is_signed_in_at_the_same_address_is_answered(exhausted, team):
    member = person(team)
    browser = browser_of(member)
    browser.defaults["REMOTE_ADDR"] = exhausted
    assert browser.get("/").status_code == 200
    _, token = services.issue_token(SYSTEM, member, "ci", ["read"], timedelta(days=1))
    rest = APIClient(REMOTE_ADDR=exhausted)
    assert rest.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_cookie_that_is_no_session_is_nobodys(exhausted):
    stranger = Client(REMOTE_ADDR=exhausted)
    stranger.cookies["sessionid"] = "a" * 32
    assert stranger.get("/login").status_code == 429


def test_probes_and_other_addresses_are_answered(exhausted):
    for path in person_limits.PROBES:
        assert Client(REMOTE_ADDR=exhausted).get(path).status_code == 200
    assert Client(REMOTE_ADDR=next(addresses)).get("/login").status_code == 200


def test_in_the_next_window_strangers_are_answered_again(exhausted, clock):
    wait_s = int(Client(REMOTE_ADDR=exhausted).get("/login")["Retry-After"])
    clock(wait_s)
    assert Client(REMOTE_ADDR=exhausted).get("/login").status_code == 200


def spent(name):
    key, _ = counters._window(f"processor-ms:{name}", person_limits.WINDOW_S)
    return int(counters.client().get(key) or 0)


def test_what_a_stranger_takes_counts_for_the_address_and_a_right_password_for_its_owner(team, monkeypatch):
    member, address = person(team), next(addresses)
    services.set_password(SYSTEM, member, "a long enough secret")
    ticks = count(0, 0.1)
    monkeypatch.setattr("portal.http.person_limits.time.thread_time", lambda: next(ticks))
    Client(REMOTE_ADDR=address).get("/login")
    assert spent(address) == 100
    words = {"username": member.username, "password": "a long enough secret"}
    assert Client(REMOTE_ADDR=address).post("/login", words).status_code == 302
    assert (spent(address), spent(member.pk)) == (100, 100)
    assert client(member).get("/api/v1/me").status_code == 200
    assert spent(address) == 100


def test_as_many_addresses_are_remembered_as_there_is_room_for(settings, monkeypatch):
    settings.ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE = 0
    monkeypatch.setattr("portal.http.early_refusals.REMEMBERED", 2)
    for _ in range(3):
        Client(REMOTE_ADDR=next(addresses)).get("/login")
    assert len(person_limits._exhausted) == 2
