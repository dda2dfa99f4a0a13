"""What `gpu-portal kubeconfig --project` and `gpu-portal credential` print, write and keep."""

import json
from datetime import datetime, timedelta

import pytest
import yaml

from portal.cli import credential_cache
from tests.support.given_tokens import SERVER, give_tokens

pytestmark = pytest.mark.django_db(transaction=True)
FOR_PROJECT = ("kubeconfig", "--project", "vision-train")


@pytest.fixture
def tokens(monkeypatch):
    return give_tokens(monkeypatch)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def user_of(kubeconfig):
    [user] = yaml.safe_load(kubeconfig)["users"]
    return user["user"]


def test_a_projects_kubeconfig_is_printed_with_the_plugin_and_no_token(run, project, tokens):
    printed = yaml.safe_load(run(*FOR_PROJECT).stdout)
    assert printed["current-context"] == project.namespace
    assert printed["clusters"][0]["cluster"]["server"] == SERVER
    assert user_of(run(*FOR_PROJECT).stdout)["exec"]["args"] == ["credential", "--cluster", "local"]
    assert tokens == []


def test_with_format_token_a_token_is_in_it(run, tokens):
    given = json.loads(run(*FOR_PROJECT, "--format", "token", "-o", "json").stdout)
    assert user_of(given["kubeconfig"]) == {"token": "t1"}
    assert given["expires_at"] is not None


def test_without_a_name_it_is_the_default_projects(run, project, tokens, monkeypatch):
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "vision-train")
    assert yaml.safe_load(run("kubeconfig").stdout)["current-context"] == project.namespace


@pytest.mark.parametrize("mode_before", [None, 0o644])
def test_a_file_is_written_for_its_owner_alone(run, tokens, tmp_path, mode_before):
    file = tmp_path / "kubeconfig"
    if mode_before:
        file.touch()
        file.chmod(mode_before)
    said = run(*FOR_PROJECT, "--file", str(file)).stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert "exec" in user_of(file.read_text(encoding="utf-8"))
    assert said.startswith(f"{file} renews its token by itself; it is for all your projects in local")


def test_a_written_file_with_a_token_says_until_when_it_is_valid(run, tokens, tmp_path):
    said = run(*FOR_PROJECT, "--format", "token", "--file", str(tmp_path / "kubeconfig")).stdout
    assert f"is valid until {tokens[0].expires_at:%Y-%m-%d %H:%M:%S}Z" in said


def test_a_credential_is_printed_as_kubectl_reads_it(run, tokens):
    printed = json.loads(run("credential").stdout)
    assert (printed["apiVersion"], printed["kind"]) == ("client.authentication.k8s.io/v1", "ExecCredential")
    assert printed["status"]["token"] == "t1"
    expires_at = printed["status"]["expirationTimestamp"].replace("Z", "+00:00")
    assert expires_at[:19] == tokens[0].expires_at.isoformat()[:19]
    assert expires_at.endswith("+00:00")


@pytest.mark.parametrize(("minutes", "token"), [(39, "t1"), (41, "t2"), (49, "t2")])
def test_of_the_50_minutes_of_a_credential_40_are_used(run, tokens, monkeypatch, minutes, token):
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(minutes=minutes)

    assert json.loads(run("credential").stdout)["status"]["token"] == "t1"
    monkeypatch.setattr(credential_cache, "datetime", Later)
    assert json.loads(run("credential").stdout)["status"]["token"] == token
