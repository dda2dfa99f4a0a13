"""An expired token is told apart from an unknown one: in answers, in lists, on the page and by the command line."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants import services, tokens
from portal.tenants.actors import SYSTEM
from portal.tenants.models import ApiToken, User
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


def expired(user: User) -> str:
    """Return a token of the person that expired an hour ago."""
    with clock.frozen(clock.now() - timedelta(hours=2)):
        _, secret = services.issue_token(SYSTEM, user, "old", ["read"], timedelta(hours=1))
    return secret


def ask(token: str) -> Any:
    return APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})


def test_an_expired_token_is_answered_with_when_it_expired():
    user = person()
    answer = ask(expired(user))
    at = ApiToken.objects.get(user=user).expires_at
    assert (answer.status_code, answer.json()["reason"]) == (401, "token_invalid")
    assert answer.json()["detail"] == f"The token expired at {at:%Y-%m-%d %H:%M:%S} UTC."


def test_a_wrong_secret_is_not_told_that_its_prefix_expired():
    _, prefix, secret = expired(person()).split("_", 2)
    wrong = f"gpup_{prefix}_{secret[::-1]}"
    assert "unknown, revoked or expired" in ask(wrong).json()["detail"]


def test_a_revoked_token_stays_unknown_after_its_end():
    token = expired(person())
    ApiToken.objects.update(revoked_at=clock.now())
    assert "unknown, revoked or expired" in ask(token).json()["detail"]


def test_the_list_and_the_page_say_what_became_of_each_token():
    user = person()
    api = client(user)
    expired(user)
    row, _ = services.issue_token(SYSTEM, user, "lost", ["read"], timedelta(days=1))
    services.revoke_token(user, user, row.pk)
    listed = {found["name"]: found["state"] for found in api.get("/api/v1/tokens").json()["results"]}
    assert listed == {"test": "valid", "old": "expired", "lost": "revoked"}
    browser = Client()
    browser.force_login(user)
    page = browser.get("/me").content.decode()
    assert all(f'data-label="State">{state}<' in page for state in tokens.State)
    assert page.count("Revoke<") == 1


def test_who_am_i_says_until_when_the_token_is_valid():
    user = person()
    until = client(user).get("/api/v1/me").json()["token_expires_at"]
    assert until.startswith(f"{ApiToken.objects.get(user=user).expires_at:%Y-%m-%dT%H:%M}")
    browser = Client()
    browser.force_login(user)
    assert browser.get("/api/v1/me").json()["token_expires_at"] is None


@pytest.mark.django_db(transaction=True)
def test_the_command_line_says_that_the_token_expired(run, member, monkeypatch):
    assert "token    valid until 2" in run("whoami").stdout
    assert "valid" in run("token", "list").stdout
    monkeypatch.setenv("GPU_PORTAL_TOKEN", expired(member))
    result = run("whoami")
    assert result.exit_code == 1
    assert "The token expired at" in result.stderr
    assert "gpu-portal login" in result.stderr
