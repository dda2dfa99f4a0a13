"""Several allocations are released with one call, each as far as its caller may."""

from typing import Any

import pytest

from allocations.models import Allocation
from allocations.requests import bulk_actions
from portal.core.models import AuditEntry
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.fleet import allocate
from tests.support.people import client, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations/release"


def release(api: Any, **body: Any) -> Any:
    return api.post(URL, body, format="json")


def results(answer: Any) -> list[tuple[str, bool]]:
    assert answer.status_code == 200, answer.content
    return [(row["name"] or row["id"], row["released"]) for row in answer.json()["results"]]


def live() -> set[str]:
    return set(Allocation.objects.filter(desired=Allocation.Desired.HELD).values_list("name", flat=True))


def test_those_that_are_named_are_released(api, member, project):
    first, second, _ = (allocate(member, project, name=name) for name in ("a", "b", "c"))
    answer = release(api, ids=[str(first.pk), str(second.pk), str(first.pk)], reason="done")
    assert results(answer) == [("a", True), ("b", True)]
    assert [row["phase"] for row in answer.json()["results"]] == ["releasing", "releasing"]
    assert live() == {"c"}
    assert first.transitions.get(type="end").message == "“done”"
    assert AuditEntry.objects.filter(action="allocation.release").count() == 2


def test_a_dry_run_says_what_would_be_released_and_releases_nothing(api, member, project):
    allocate(member, project, name="a")
    answer = release(api, project=["vision-train"], dry_run=True)
    assert (results(answer), answer.json()["dry_run"]) == ([("a", True)], True)
    assert answer.json()["results"][0]["phase"] == "queued"
    assert live() == {"a"}


def test_filters_release_what_the_caller_may_release_and_leave_the_rest(api, member, team, project):
    allocate(member, project, name="mine")
    allocate(person(team), project, name="theirs")
    assert results(release(api, project=["vision-train"])) == [("mine", True)]
    assert live() == {"theirs"}
    assert results(release(client(person(team, "lead")), project=["vision-train"])) == [("theirs", True)]


def test_each_filter_narrows(api, member, team, project):
    tenants.create_project(SYSTEM, team, "vision-dev", "Dev")
    for name in ("a", "b"):
        allocate(member, project, name=name)
    assert results(release(api, mine=True, project=["vision-dev"])) == []
    assert results(release(api, mine=True, phase=["active"])) == []
    assert results(release(api, name=["a"], offering=["l40s/whole"], team=["vision"], phase=["queued"])) == [
        ("a", True)
    ]


def test_what_one_must_not_see_answers_as_what_is_not_there(member, other_team, project):
    row = allocate(member, project)
    absent = "00000000-0000-4000-8000-000000000000"
    answer = release(client(person(other_team)), ids=[str(row.pk), absent, "x"])
    assert results(answer) == [(str(row.pk), False), (absent, False), ("x", False)]
    hidden, missing, wrong = ({**row, "id": ""} for row in answer.json()["results"])
    assert hidden == missing == wrong
    assert hidden["problem"]["reason"] == "not_found"
    assert live() == {row.name}


def test_what_one_sees_and_may_not_release_is_said_and_keeps_no_other(api, member, team, project):
    mine, theirs = allocate(member, project, name="mine"), allocate(person(team), project, name="theirs")
    answer = release(api, ids=[str(theirs.pk), str(mine.pk)])
    assert results(answer) == [("theirs", False), ("mine", True)]
    assert [row["problem"] and row["problem"]["reason"] for row in answer.json()["results"]] == ["role_missing", None]


def test_a_dry_run_knows_what_one_may_not_release(api, team, project, member):
    theirs = allocate(person(team), project)
    answer = release(api, ids=[str(theirs.pk)], dry_run=True)
    assert answer.json()["results"][0]["problem"]["reason"] == "role_missing"


def test_repeating_the_call_changes_nothing(api, member, project):
    row = allocate(member, project, name="a")
    for expected in (True, False):
        assert results(release(api, ids=[str(row.pk)])) == [("a", expected)]
    assert row.transitions.filter(type="end").count() == 1


def test_a_call_releases_a_bounded_number_the_oldest_first(api, member, project, monkeypatch):
    monkeypatch.setattr(bulk_actions, "MAX_AT_ONCE", 2)
    for name in ("a", "b", "c"):
        allocate(member, project, name=name)
    first, second = (release(api, project=["vision-train"]) for _ in range(2))
    assert (results(first), first.json()["more"]) == ([("a", True), ("b", True)], True)
    assert (results(second), second.json()["more"]) == ([("c", True)], False)


@pytest.mark.parametrize("body", [{}, {"mine": False}, {"dry_run": True}, {"ids": ["x"], "project": ["vision-train"]}])
def test_nothing_is_released_without_one_way_to_say_which(api, member, project, body):
    allocate(member, project, name="a")
    answer = release(api, **body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["ids"])
    assert live() == {"a"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": []}, "ids"),
        ({"ids": ["x"] * 101}, "ids"),
        ({"phase": ["gone"]}, "phase.0"),
        ({"project": "x"}, "project"),
    ],
)
def test_what_cannot_be_is_named(api, body, field):
    answer = release(api, **body)
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_a_token_that_only_reads_releases_nothing(member, project):
    row = allocate(member, project)
    assert release(client(member, "read"), ids=[str(row.pk)]).status_code == 403
