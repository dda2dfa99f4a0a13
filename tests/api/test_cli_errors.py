"""Errors of the gpu-portal command: on standard error, as text or as a problem document, and its exit codes."""

import json

import pytest

from allocations.models import Allocation
from portal.cli import client
from tests.support.scripted_server import EMPTY_LIST, answer, serving

pytestmark = pytest.mark.django_db(transaction=True)
TOO_MANY = ("request", "l40s/whole", "--project", "vision-train", "--count", "6")


def problem(result):
    assert result.stdout == ""
    return json.loads(result.stderr)


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
def test_a_busy_portal_is_asked_again_after_the_pause_that_it_names(run, monkeypatch, status):
    with serving(answer(status, "{}", Retry_After="2"), answer("200 OK", EMPTY_LIST)) as asked:
        monkeypatch.setenv("GPU_PORTAL_URL", asked.url)
        assert run("list").stdout == "No allocations.\n"
    first, second = asked.times
    assert second - first >= 2


def test_a_refusal_as_json_is_the_problem_itself_on_standard_error(run):
    result = run(*TOO_MANY, "-o", "json")
    assert result.exit_code == 1
    found = problem(result)
    assert (found["status"], found["reason"]) == (409, "quota_exceeded")
    assert found["dimensions"]


def test_every_other_error_is_a_problem_too(run, monkeypatch):
    assert problem(run("show", "nope", "--output=json"))["reason"] == "not_found"
    wrong = run("request", "-o", "json", "--nonsense")
    assert (wrong.exit_code, problem(wrong)["reason"]) == (2, "usage")
    assert problem(run("lists", "-o", "json"))["reason"] == "usage"
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setenv("GPU_PORTAL_URL", "http://127.0.0.1:1")
    assert problem(run("list", "-ojson"))["reason"] == "unreachable"
    monkeypatch.delenv("GPU_PORTAL_TOKEN")
    assert problem(run("list", "-o", "json"))["reason"] == "not_configured"


def test_an_unreachable_server_is_told_in_one_sentence(run, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setenv("GPU_PORTAL_URL", "http://127.0.0.1:1")
    result = run("list")
    assert result.exit_code == 5
    assert result.stderr == "Error: http://127.0.0.1:1 cannot be reached: connection refused.\n"
    monkeypatch.setenv("GPU_PORTAL_URL", "http://portal.invalid")
    assert run("list").stderr.startswith("Error: http://portal.invalid cannot be reached: ")
    monkeypatch.setenv("GPU_PORTAL_URL", "localhost:8000")
    assert "is not the URL of a portal. It begins with http://" in run("list").stderr
    with serving(answer("404 Not Found", "<html>no</html>")) as proxy:
        monkeypatch.setenv("GPU_PORTAL_URL", proxy.url)
        result = run("list")
    assert result.stderr == f"Error: {proxy.url} answered with HTTP status 404 and no JSON object, as no portal does.\n"


def test_hints_name_commands_and_options(run, monkeypatch):
    unknown = run("request", "l40s/hole", "--project", "vision-train")
    assert "`gpu-portal offerings` lists what is offered." in unknown.stderr
    assert "`gpu-portal whoami` lists your projects." in run("request", "l40s/whole", "--project", "nope").stderr
    monkeypatch.setenv("GPU_PORTAL_TOKEN", "gpup_wrong")
    assert "`gpu-portal login`" in run("list").stderr


def test_a_dry_run_of_what_does_not_fit_exits_1(run):
    result = run(*TOO_MANY, "--dry-run")
    assert result.exit_code == 1
    assert result.stdout.startswith("Does not fit.")
    as_json = run(*TOO_MANY, "--dry-run", "-o", "json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["fits"]) == (1, "never")
    assert not Allocation.objects.exists()


def test_a_dry_run_of_what_would_queue_exits_0(run):
    run("request", "h100/whole", "--project", "vision-train", "--count", "2")
    assert run("request", "h100/whole", "--project", "vision-train", "--count", "2", "--dry-run").exit_code == 0
