"""gpu-portal costs: a table with bars, and the answers as JSON and CSV."""

import json

import click
import pytest

from allocations.models import Allocation
from portal.cli.costs import KEYS, costs
from portal.tenants.models import User
from quotas.costs import columns
from tests.support.capacity import RESOURCES, record
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db(transaction=True)
DAY = ("--window", "2026-11-02,2026-11-03")


@pytest.fixture
def usage(run):
    used(hour(0), hour(4), member="ada", labels={"app": "train"})
    used(hour(0), hour(1), member="grace", labels={"app": "serve"})
    used(hour(-5), hour(-3), member="grace")


def test_costs_are_a_table_with_bars(run, usage):
    printed = run("costs", *DAY, "--aggregate", "member").stdout.splitlines()
    assert [line.split() for line in printed[:3]] == [
        ["MEMBER", "GPU-HOURS", "COST"],
        ["ada", "4.000000", "4.4000", "EUR", "█" * 20],
        ["grace", "1.000000", "1.1000", "EUR", "█" * 5],
    ]
    assert printed[3] == ("Total: 5.5000 EUR, 5.000000 GPU-hours, from 2026-11-02 00:00:00Z to 2026-11-03 00:00:00Z.")


def test_the_window_before_is_beside(run, usage):
    printed = run("costs", *DAY, "--aggregate", "member", "--compare", "previous", "--cost", "daily").stdout
    lines = printed.splitlines()
    assert "COST A DAY" in lines[0]
    assert lines[2].split()[:8] == ["grace", "1.000000", "1.1000", "EUR", "2.2000", "EUR", "-1.1000", "█" * 5]
    assert lines[-1] == "Before: 2.2000 EUR a day, from 2026-11-01 00:00:00Z to 2026-11-02 00:00:00Z."


def test_a_window_before_that_was_not_recorded_is_not_known(run, usage):
    record(RESOURCES, 0)
    lines = run("costs", *DAY, "--aggregate", "member", "--compare", "previous").stdout.splitlines()
    assert lines[1].split()[:7] == ["ada", "4.000000", "4.4000", "EUR", "not", "known", "-"]
    assert lines[-1].startswith("Before: not known, from ")


@pytest.mark.parametrize("words", [("--daily",), ("--accumulate", "day")])
def test_a_step_has_its_start(run, usage, words):
    printed = run("costs", "--window", "2026-11-01,2026-11-03", *words, "--aggregate", "all").stdout.splitlines()
    assert [line.split()[:2] for line in printed[1:3]] == [["2026-11-01", "00:00:00Z"], ["2026-11-02", "00:00:00Z"]]


def test_the_words_are_those_of_rest(run, usage):
    words = ("--filter", 'label[app]:"train"|member:"nobody"', "--timezone", "Europe/Berlin", "--week-start", "sunday")
    body = json.loads(run("costs", *DAY, *words, "--aggregate", "label:app", "--idle", "hide", "-o", "json").stdout)
    assert [(row["name"], row["total"]) for row in body["results"]] == [("train", "4.4000")]
    assert body["window"]["start"] == "2026-11-01T23:00:00Z"


def test_csv_is_that_of_the_portal(run, usage):
    lines = run("costs", *DAY, "--aggregate", "member,label:app", "-o", "csv").stdout.splitlines()
    assert lines[0].startswith("window_start,window_end,member,label:app,gpu_hours,unpriced_gpu_hours,cost,")
    assert lines[1].startswith("2026-11-02T00:00:00Z,2026-11-03T00:00:00Z,ada,train,4.000000,0,4.4000,")
    assert len(lines) == 3
    assert run("list", "-o", "csv").exit_code == 2


@pytest.mark.parametrize("output", ["text", "csv"])
def test_a_filter_that_cannot_be_read_is_said_with_its_column(run, usage, output):
    result = run("costs", "--filter", "member=ada", "-o", output)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--filter: Column 7: " in result.stderr


def test_a_request_takes_labels(run, project):
    words = ("--project", project.slug, "--label", "stage=prod", "--label", "app=train")
    made = json.loads(run("request", "l40s/whole", *words, "-o", "json").stdout)
    assert made["labels"] == Allocation.objects.get().labels == {"app": "train", "stage": "prod"}
    assert "app=train, stage=prod" in run("show", made["name"]).stdout
    assert "app=train, stage=prod" in run("list", "-o", "wide").stdout
    listed = [run("list", "--label", label, "-o", "name").stdout for label in ("app=train,stage=prod", "app=serve")]
    assert listed == [f"allocation/{made['id']}\n", ""]
    assert run("list", "--label", "app").exit_code == 1


@pytest.mark.parametrize(
    ("label", "code", "words"), [("app", 2, "key=value"), ("app=-", 1, "--label: '-' is not a valid value")]
)
def test_labels_that_cannot_be_are_said(run, project, label, code, words):
    result = run("request", "l40s/whole", "--project", project.slug, "--label", label)
    assert (result.exit_code, words in result.stderr) == (code, True)


def test_idle_cost_is_a_column_for_who_may_see_it(run, usage, member):
    record(RESOURCES, 0)
    refused = run("costs", *DAY, "--idle", "share")
    assert refused.exit_code == 1
    assert "idle=share tells what all teams together use" in refused.stderr
    User.objects.filter(pk=member.pk).update(platform_role="auditor")
    lines = run("costs", *DAY, "--aggregate", "member", "--idle", "share", "--idle-split", "even").stdout.splitlines()
    assert lines[0].split() == ["MEMBER", "GPU-HOURS", "COST", "IDLE"]
    shared = {line.split()[0]: line.split()[4] for line in lines[1:3]}
    assert shared["ada"] == shared["grace"] != "0"


def test_a_forecast_says_what_is_known_and_what_is_not(run):
    printed = run("forecast", "--timezone", "Europe/Berlin").stdout.splitlines()
    assert printed[1].split() == ["COST"]
    assert [line.split()[0] for line in printed[2:4]] == ["posted", "committed"]
    assert printed[-1] == "The rest is unknown: 0 days of history, 14 are needed."
    used(hour(0), hour(4))
    printed = run("forecast", "--window", "week", "--team", "vision").stdout.splitlines()
    assert [line.split()[0] for line in printed[2:6]] == ["posted", "committed", "expected", "total"]
    assert printed[-1].startswith(("80 % range: ", "Probably "))
    assert run("forecast", "--team", "another").exit_code == 1


def test_keys_are_completed_and_are_those_of_the_portal():
    [option] = [each for each in costs.params if each.name == "aggregate"]
    items = option.type.shell_complete(click.Context(costs), option, "team,n")
    assert [item.value for item in items] == ["team,namespace", "team,node"]
    assert set(KEYS) == {*columns.KEYS, columns.ALL}
