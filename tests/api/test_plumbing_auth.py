from datetime import timedelta

import pytest
from django.test import RequestFactory
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.forms import SignInForm
from portal.tenants.models import ApiToken
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


def test_me_tells_teams_projects_and_scopes(team, other_team, project):
    user = person(team, "member")
    assert client(user, "read").get("/api/v1/me").json() == {
        "username": user.username,
        "platform_role": "",
        "teams": [{"slug": "vision", "role": "member"}],
        "projects": [{"slug": "vision-train", "team": "vision", "namespace": "vision-train"}],
        "scopes": ["read"],
        "token_expires_at": f"{ApiToken.objects.get(user=user).expires_at:%Y-%m-%dT%H:%M:%S.%fZ}",
    }


def test_an_operator_sees_every_team_as_operator(team, other_team):
    answer = client(person(platform_role="operator")).get("/api/v1/me").json()
    assert answer["teams"] == [
        {"slug": "language", "role": "operator"},
        {"slug": "vision", "role": "operator"},
    ]


def test_the_browsers_session_has_every_scope(team):
    api = APIClient()
    api.force_login(person(team))
    assert api.get("/api/v1/me").json()["scopes"] == ["read", "request", "approve", "admin"]


def test_a_session_cannot_write_without_a_csrf_token(team):
    api = APIClient(enforce_csrf_checks=True)
    api.force_login(person(team))
    answer = api.post("/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json")
    assert answer.status_code == 403
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("scheme", ["Basic", "Token", "ApiKey"])
def test_another_scheme_is_not_called_a_wrong_token(scheme):
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"{scheme} gpup_anything")
    assert "Authorization: Bearer <token>" in api.get("/api/v1/me").json()["detail"]


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer nonsense", "Basic bWU6bWU=", "Bearer gpup_ä"])
def test_without_a_token_that_works_the_answer_is_401(header):
    api = APIClient()
    if header:
        api.credentials(HTTP_AUTHORIZATION=header)
    answer = api.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="gpu-portal"'
    assert answer.json()["hint"]


def test_an_expired_token_is_401(team):
    api = client(person(team))
    with clock.frozen(clock.now() + timedelta(days=2)):
        assert api.get("/api/v1/me").status_code == 401


def test_a_missing_scope_is_403_and_named(team):
    answer = client(person(team), "read").post("/api/v1/tokens", {"name": "x", "scopes": ["read"]}, format="json")
    assert answer.status_code == 403
    assert answer.json()["reason"] == "role_missing"
    assert "request" in answer.json()["detail"]


def test_the_secret_of_a_token_is_shown_once(team):
    api = client(person(team))
    made = api.post("/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json")
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    secret = made.json()["token"]
    assert secret not in api.get("/api/v1/tokens").content.decode()
    fresh = APIClient()
    fresh.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert fresh.get("/api/v1/me").json()["scopes"] == ["read"]
    assert api.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204
    assert fresh.get("/api/v1/me").status_code == 401


def test_a_token_hands_on_no_scope_it_lacks(team):
    answer = client(person(team), "read", "request").post(
        "/api/v1/tokens", {"name": "ci", "scopes": ["admin"]}, format="json"
    )
    assert answer.status_code == 403


def test_a_token_creates_none_that_outlives_it(team):
    _, secret = services.issue_token(SYSTEM, person(team), "short", ["read", "request"], timedelta(days=1))
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    own = ApiToken.objects.get(name="short").expires_at
    answer = api.post(
        "/api/v1/tokens", {"name": "ci", "scopes": ["read"], "expires_at": own + timedelta(seconds=1)}, format="json"
    )
    assert (answer.status_code, answer.json()["reason"]) == (400, "outlives_token")
    assert own.isoformat() in answer.json()["errors"]["expires_at"][0]
    assert "leave expires_at out" in answer.json()["hint"]
    assert not ApiToken.objects.filter(name="ci").exists()
    body = {"name": "same end", "scopes": ["read"], "expires_at": own}
    assert api.post("/api/v1/tokens", body, format="json").status_code == 201
    assert api.post("/api/v1/tokens", {"name": "none asked", "scopes": ["read"]}, format="json").status_code == 201
    assert list(ApiToken.objects.exclude(name="short").values_list("expires_at", flat=True)) == [own, own]


def test_a_token_from_a_session_lives_as_long_as_asked(team):
    api = APIClient()
    api.force_login(person(team))
    for name, body in (("year", {"expires_at": clock.now() + timedelta(days=364)}), ("default", {})):
        assert api.post("/api/v1/tokens", {"name": name, "scopes": ["admin"], **body}, format="json").status_code == 201
    ends = dict(ApiToken.objects.values_list("name", "expires_at"))
    assert ends["year"] > clock.now() + timedelta(days=363)
    assert timedelta(days=89) < ends["default"] - clock.now() < timedelta(days=91)


def test_another_persons_token_is_404(team):
    row, _ = services.issue_token(SYSTEM, person(team), "ci", ["read"], timedelta(days=1))
    assert client(person(team)).delete(f"/api/v1/tokens/{row.pk}").status_code == 404


def test_sign_in_is_limited_per_name_and_address(settings, monkeypatch):
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_013.0)  # all in one window
    settings.LOGINS_PER_MINUTE = 2
    request = RequestFactory().post("/login")
    name = person().username
    errors = [
        SignInForm(request, {"username": name, "password": "wrong"}).errors["__all__"].as_data()[0].code
        for _ in range(3)
    ]
    assert errors == ["invalid_login", "invalid_login", "throttled"]
