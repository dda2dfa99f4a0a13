"""Kubeconfigs of projects, and credentials: who gets none, and what is refused before a cluster is asked."""

from datetime import timedelta

import pytest
from click.testing import CliRunner
from rest_framework.test import APIClient

from portal.cli.main import cli
from portal.core.clock import now
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project
from tests.support.given_tokens import give_tokens
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/projects/vision-train/kubeconfig"


@pytest.mark.parametrize("platform_role", ["operator", "auditor"])
def test_operators_and_auditors_get_none_and_hear_what_they_can_do(team, project, platform_role):
    api = client(person(platform_role=platform_role))
    for answer in (api.get(URL), api.post("/api/v1/credentials", {}, format="json")):
        assert answer.status_code == 403
        assert "your own credentials" in answer.json()["hint"]


def test_another_cluster_is_refused_as_one_that_there_is_not(team, project):
    api = client(person(team))
    answer = api.post("/api/v1/credentials", {"cluster": "elsewhere"}, format="json")
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("You have no account on the cluster elsewhere")


def test_an_archived_project_has_none(team, project):
    member = person(team)
    Project.objects.update(archived_at=now())
    answer = client(member).get(URL)
    assert (answer.status_code, answer.json()["reason"]) == (409, "wrong_phase")
    assert client(member).post("/api/v1/credentials", {}, format="json").status_code == 403


def test_an_unknown_format_is_refused_with_those_that_there_are(team, project):
    answer = client(person(team)).get(URL, {"format": "oidc"})
    assert answer.status_code == 400
    assert answer.json()["errors"] == {"format": ["Use one of exec, token."]}


def test_a_token_that_only_reads_gets_none(team, project):
    assert client(person(team), "read").get(URL).status_code == 403


def test_no_cache_keeps_a_credential(team, project, monkeypatch):
    give_tokens(monkeypatch)
    answer = client(person(team)).post("/api/v1/credentials", {}, format="json")
    assert (answer.status_code, answer.json()["token"]) == (201, "t1")
    assert answer["Cache-Control"] == "no-store"


def client_until(user, left):
    """Return a client whose token of the portal ends after ``left``."""
    _, secret = services.issue_token(SYSTEM, user, "short", ["read", "request"], left)
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return api


@pytest.mark.parametrize(("left", "lives"), [(20, 20), (45, 45), (90, 60)])
def test_what_a_token_gets_for_the_cluster_does_not_outlive_it(team, project, monkeypatch, left, lives):
    given = give_tokens(monkeypatch, life=timedelta(hours=2))
    api = client_until(person(team), timedelta(minutes=left))
    api.post("/api/v1/credentials", {}, format="json")
    api.get(URL, {"format": "token"})
    ends = now() + timedelta(minutes=lives)
    assert [ends - timedelta(seconds=30) < token.expires_at <= ends for token in given] == [True, True]


def test_a_session_gets_tokens_that_live_as_long_as_the_operator_says(team, project, monkeypatch, settings):
    settings.KUBECONFIG_TTL_S = 1800
    given = give_tokens(monkeypatch, life=timedelta(hours=2))
    browser = APIClient()
    browser.force_login(person(team))
    assert browser.get(URL, {"format": "token"}).status_code == 200
    assert timedelta(minutes=29) < given[0].expires_at - now() <= timedelta(minutes=30)


@pytest.mark.parametrize("words", [(), ("train", "--project", "vision-train")])
def test_the_command_wants_either_an_allocation_or_a_project(monkeypatch, words):
    monkeypatch.setenv("GPU_PORTAL_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GPU_PORTAL_TOKEN", "gpup_none")
    result = CliRunner().invoke(cli, ["kubeconfig", *words])
    assert result.exit_code == 2
    assert "--project" in result.stderr
