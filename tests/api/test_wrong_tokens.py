"""Wrong bearer tokens are limited by address, and valid ones are not refused because of them."""

from datetime import timedelta
from itertools import count

import pytest
from rest_framework.test import APIClient

from portal.core import clock
from portal.http import counters
from portal.tenants import services, tokens
from portal.tenants.actors import SYSTEM
from tests.support.people import person

pytestmark = pytest.mark.django_db
addresses = (f"198.51.100.{number}" for number in count(1))


@pytest.fixture(autouse=True)
def two_a_minute(monkeypatch, settings):
    settings.WRONG_TOKENS_PER_MINUTE = 2
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_007.0)  # no minute ends meanwhile


@pytest.fixture
def address():
    return next(addresses)


def ask(token, address):
    return APIClient(REMOTE_ADDR=address).get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})


def unknown():
    return tokens.generate()[1]


def test_beyond_the_limit_a_wrong_token_is_429_with_the_time_to_wait(address):
    assert [ask(unknown(), address).status_code for _ in range(3)] == [401, 401, 429]
    answer = ask(unknown(), address)
    assert 0 < int(answer["Retry-After"]) <= 61
    problem = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert problem["type"] == "urn:gpu-portal:problem:throttled"
    assert "too many from your address" in problem["detail"]
    assert ask(unknown(), next(addresses)).status_code == 401


def test_expired_revoked_and_malformed_tokens_count_as_unknown_ones_do(address, team):
    user = person(team)
    row, revoked = services.issue_token(SYSTEM, user, "revoked", ["read"], timedelta(days=1))
    services.revoke_token(user, user, row.pk)
    _, expired = services.issue_token(SYSTEM, user, "expired", ["read"], timedelta(days=1))
    with clock.frozen(clock.now() + timedelta(days=2)):
        assert [ask(token, address).status_code for token in (revoked, expired, "gpup_x")] == [401, 401, 429]


def test_a_right_token_is_not_refused_for_the_wrong_ones_of_its_neighbours(address, team):
    _, right = services.issue_token(SYSTEM, person(team), "ci", ["read"], timedelta(days=1))
    assert [ask(unknown(), address).status_code for _ in range(3)] == [401, 401, 429]
    assert ask(right, address).status_code == 200


def test_a_forged_header_is_no_other_address(address):
    for _ in range(2):
        ask(unknown(), address)
    api = APIClient(REMOTE_ADDR=address)
    headers = {"Authorization": f"Bearer {unknown()}", "X-Forwarded-For": next(addresses)}
    assert api.get("/api/v1/me", headers=headers).status_code == 429


def test_a_wrong_token_costs_one_query_and_one_of_a_wrong_form_none(address, django_assert_num_queries):
    with django_assert_num_queries(1):
        ask(unknown(), address)
    with django_assert_num_queries(0):
        ask("gpup_of-no-such-form", address)


def test_wrong_tokens_for_the_metrics_are_counted_with_the_others(address, settings):
    settings.METRICS_TOKEN = "scrape-me"
    api = APIClient(REMOTE_ADDR=address)
    answers = [api.get("/metrics", headers={"Authorization": f"Bearer {number}"}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert api.get("/metrics", headers={"Authorization": "Bearer scrape-me"}).status_code == 200
