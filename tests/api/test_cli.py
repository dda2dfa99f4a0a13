"""The gpu-portal command against the portal itself, over HTTP."""

import json
from datetime import timedelta

import pytest

from allocations.domain.phases import Ending
from allocations.lifecycle import transitions
from allocations.models import Allocation
from portal.cli import config
from portal.cli.main import cli
from portal.tenants.models import ApiToken
from quotas.catalog.models import Flavor
from tests.support.fleet import allocate
from tests.support.pages import ended

pytestmark = pytest.mark.django_db(transaction=True)


def as_json(result):
    return json.loads(result.stdout)


def test_login_keeps_a_token_that_works_for_its_owner_alone(run, member, monkeypatch):
    assert "Signed in" in run("login").stdout
    assert config.path().stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("GPU_PORTAL_URL")
    monkeypatch.delenv("GPU_PORTAL_TOKEN")
    assert run("offerings").exit_code == 0


@pytest.mark.parametrize("content", [b"\xff", b"url = ", b'url = "a\\u0007"\n', b'token = "gpup_\xc3\xa4"\n'])
def test_login_writes_a_file_anew_that_cannot_be_used(run, monkeypatch, content):
    config.path().parent.mkdir()
    config.path().write_bytes(content)
    assert run("config", "set", "project", "vision-train").exit_code == 1
    assert "Signed in" in run("login").stdout
    monkeypatch.delenv("GPU_PORTAL_URL")
    monkeypatch.delenv("GPU_PORTAL_TOKEN")
    assert run("offerings").exit_code == 0


def test_login_keeps_no_token_that_does_not_work(run):
    result = run("login", "--token", "gpup_wrong")
    assert result.exit_code == 1
    assert "unknown, revoked or expired" in result.stderr
    assert not config.path().exists()


def test_without_a_token_it_says_what_to_do(run, monkeypatch):
    monkeypatch.delenv("GPU_PORTAL_TOKEN")
    result = run("list")
    assert result.exit_code == 1
    assert "gpu-portal login" in result.stderr


def test_offerings_say_what_can_be_had(run):
    assert "l40s/whole" in run("offerings", "--project", "vision-train").stdout


def test_offerings_say_what_cpu_and_memory_go_with_a_slice(run):
    Flavor.objects.filter(name="l40s").update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    printed = run("offerings").stdout
    assert "15190m  126443Mi" in printed
    assert printed.count("126443Mi") == 1


def test_a_request_is_made_shown_extended_and_given_back(run):
    made = as_json(run("request", "l40s/whole", "--project", "vision-train", "--name", "train", "-o", "json"))
    assert (made["name"], made["phase"]) == ("train", "queued")
    assert "1 of 1" in run("show", "train").stdout
    extended = as_json(run("extend", made["id"], "--hours", "2", "--output", "json"))
    assert (made["hours"], extended["hours"]) == ("8.000000", "10.000000")
    assert "train" in run("queue").stdout
    assert [row["name"] for row in as_json(run("list", "--mine", "-o", "json"))["results"]] == ["train"]
    assert run("release", "train").stdout.startswith("train is releasing")
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_hours_are_said_to_be_held_and_the_wait_may_be_bounded(run):
    words = ("request", "l40s/whole", "--project", "vision-train", "--hours", "4", "--give-up-after", "2d")
    printed = run(*words, "--name", "train").stdout
    assert "4 h held, 4 h left" in printed
    assert "gives up" in printed
    row = Allocation.objects.get()
    assert row.give_up_at is not None
    assert abs(row.give_up_at - row.created_at - timedelta(days=2)) < timedelta(minutes=1)
    assert "4 h from held" in run("list").stdout
    assert "4 h held; it ends" in run(*words, "--dry-run").stdout
    assert "write it as 2d, 12h" in run(*words[:-1], "soon").stderr


def test_the_same_command_with_the_same_key_asks_once(run):
    words = ("request", "l40s/whole", "--project", "vision-train", "--give-up-after", "2d", "--idempotency-key", "k")
    first = as_json(run(*words, "-o", "json"))
    again = as_json(run(*words, "-o", "json"))
    assert (again["id"], again["give_up_at"]) == (first["id"], first["give_up_at"])
    assert Allocation.objects.count() == 1


def test_a_name_is_the_live_allocations_or_else_the_last_ones(run, member, project):
    first, second = (ended(allocate(member, project, name="train")) for _ in range(2))
    assert as_json(run("show", "train", "-o", "json"))["id"] == str(second.pk)
    live = allocate(member, project, name="train")
    assert as_json(run("show", "train", "-o", "json"))["id"] == str(live.pk)
    assert as_json(run("show", str(first.pk), "-o", "json"))["phase"] == "ended"


def test_the_offering_may_be_an_option(run):
    assert run("request", "--project", "vision-train", "--offering", "h100/whole").exit_code == 0
    assert run("request", "--project", "vision-train").exit_code == 2


def test_slices_may_be_spread_over_nodes_and_not_queue_again(run):
    words = ("request", "h100/whole", "--project", "vision-train", "--spread", "--no-requeue", "-o", "json")
    made = as_json(run(*words))
    assert made["constraints"]["spread"] is True
    assert Allocation.objects.get(pk=made["id"]).requeue is False


def test_slices_are_asked_for_together_and_shared(run):
    words = ("request", "h100/whole", "--project", "vision-train", "--count", "2", "--constraint", "distinct_gpus")
    made = as_json(run(*words, "--sharing", '{"strategy": "TimeSlicing"}', "-o", "json"))
    assert made["constraints"]["distinct_gpus"] is True
    assert made["sharing"]["strategy"] == "TimeSlicing"


def test_what_is_no_json_is_said_at_its_option(run):
    result = run("request", "h100/whole", "--project", "vision-train", "--sharing", "{")
    assert result.exit_code == 2
    assert "--sharing" in result.stderr


def test_a_dry_run_asks_for_nothing(run):
    result = run("request", "l40s/whole", "--project", "vision-train", "--dry-run")
    assert "Fits now." in result.stdout
    assert not Allocation.objects.exists()


def test_a_refusal_is_told_in_words_and_exits_1(run):
    result = run("request", "l40s/whole", "--project", "vision-train", "--count", "6")
    assert result.exit_code == 1
    assert "Ask for at most 4" in result.stderr
    assert "Works (now): 4 × l40s/whole" in result.stderr


def test_waiting_exits_0_when_active(run, member, project):
    row = allocate(member, project, name="train")
    Allocation.objects.filter(pk=row.pk).update(phase="active")
    assert run("wait", "train").exit_code == 0


def test_waiting_exits_3_when_it_ended_first(run, member, project):
    row = allocate(member, project, name="train")
    transitions.end(row, Ending.PERSON, "released", "Released by ada.", actor="test")
    Allocation.objects.filter(pk=row.pk).update(phase="ended", outcome="cancelled", ended_at=row.created_at)
    assert run("wait", "train").exit_code == 3
    assert run("wait", "train", "--for", "ended").exit_code == 0


def test_waiting_exits_4_when_the_time_is_over(run):
    result = run("request", "l40s/whole", "--project", "vision-train", "--wait", "--timeout", "0.2")
    assert result.exit_code == 4


def test_an_unknown_name_is_said_to_be_unknown(run):
    result = run("show", "nope")
    assert result.exit_code == 1
    assert "no allocation nope" in result.stderr


def test_costs_are_shown_even_when_there_are_none(run):
    assert "Nothing was used." in run("costs", "--window", "today").stdout
    assert as_json(run("costs", "-o", "json"))["results"] == []


def test_tokens_are_made_listed_and_revoked(run, member):
    made = as_json(run("token", "create", "pipeline", "-o", "json"))
    assert made["scopes"] == ["read", "request"]
    assert "pipeline" in run("token", "list").stdout
    assert run("token", "revoke", str(made["id"])).exit_code == 0
    assert ApiToken.objects.get(name="pipeline").revoked_at is not None


@pytest.mark.parametrize("command", sorted(cli.commands.keys() - {"completion"}))
def test_every_command_that_answers_can_answer_in_json(command):
    found = cli.commands[command]
    leaves = found.commands.values() if hasattr(found, "commands") else [found]
    for leaf in leaves:
        assert "--output" in [option for parameter in leaf.params for option in parameter.opts]
