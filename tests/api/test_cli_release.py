"""gpu-portal release: one allocation, several, or all of a project."""

import json

import pytest

from allocations.models import Allocation
from tests.support.fleet import allocate
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)


def live() -> set[str]:
    return set(Allocation.objects.filter(desired=Allocation.Desired.HELD).values_list("name", flat=True))


@pytest.fixture
def three(run, member, project):
    for name in ("a", "b", "c"):
        allocate(member, project, name=name)


def test_a_release_says_that_it_is_releasing(run, three):
    result = run("release", "a")
    assert (result.exit_code, result.stdout) == (0, "a is releasing: charged until its slices are free\n")


def test_several_are_released_by_name(run, three):
    result = run("release", "a", "b")
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["a is releasing", "b is releasing"]
    assert live() == {"c"}


def test_a_dry_run_says_what_would_be_released(run, three):
    result = run("release", "--all", "--project", "vision-train", "--dry-run")
    assert "a would be released; it is queued" in result.stdout
    assert live() == {"a", "b", "c"}
    assert "a would be released" in run("release", "a", "--dry-run").stdout
    assert live() == {"a", "b", "c"}


def test_all_of_a_project_that_one_may_release_are_released(run, three, team, project):
    allocate(person(team), project, name="theirs")
    result = run("release", "--all", "--project", "vision-train", "-o", "json")
    assert [row["name"] for row in json.loads(result.stdout)["results"]] == ["a", "b", "c"]
    assert live() == {"theirs"}


def test_one_that_is_not_released_is_told_and_exits_1(run, three, team, project):
    allocate(person(team), project, name="theirs")
    result = run("release", "a", "theirs")
    assert result.exit_code == 1
    assert "theirs is not released:" in result.stdout
    assert live() == {"b", "c", "theirs"}


def test_a_release_by_name_in_the_default_project_waits_for_no_limit(run, three, monkeypatch, settings):
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "vision-train")
    settings.API_REQUESTS_PER_MINUTE = 1
    run("whoami")
    run("release", "a", "--request-timeout", "1s")
    assert live() == {"b", "c"}


def test_what_is_not_there_keeps_no_other_from_being_released(run, three):
    result = run("release", "a", "nope", "c", "-o", "json")
    assert result.exit_code == 1
    assert live() == {"b"}
    rows = {row["name"]: row["problem"] for row in json.loads(result.stdout)["results"]}
    assert (rows["a"], rows["nope"]["reason"], rows["c"]) == (None, "not_found", None)
    printed = run("release", "nope", "b").stdout
    assert "nope is not released: There is no allocation nope, or you cannot see it." in printed
    assert live() == set()
    assert run("release", "nope", "never").exit_code == 1


@pytest.mark.parametrize("words", [("release", "--all"), ("list",), ("jobs",)])
def test_a_project_that_is_not_there_is_no_empty_one(run, three, words):
    result = run(*words, "--project", "vision-trian")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not exist, or you cannot see it" in result.stderr


@pytest.mark.parametrize(
    "words", [(), ("--all",), ("a", "--all", "--project", "vision-train"), ("a", "--project", "x")]
)
def test_names_or_all_of_a_project_are_needed(run, words):
    assert run("release", *words).exit_code == 2


def test_waiting_is_for_one(run, three):
    assert run("release", "a", "b", "--wait").exit_code == 2
    assert live() == {"a", "b", "c"}
