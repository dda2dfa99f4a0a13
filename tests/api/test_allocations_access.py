"""Role and ownership decide what can be seen and done; an allocation that may not be seen answers 404."""

import pytest

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/allocations"
READS = ("", "/events", "/manifests", "/connect")
WRITES: tuple[tuple[str, dict[str, int]], ...] = (("/release", {}), ("/extend", {"hours": 1}), ("/retry", {}))


@pytest.fixture
def owner(team, other_team, project):
    fleet(team, other_team)
    return person(team)


@pytest.fixture
def row(owner, project):
    return allocate(owner, project)


@pytest.mark.parametrize("path", READS)
def test_another_teams_allocation_is_not_there_to_read(row, other_team, path):
    answer = client(person(other_team, "lead")).get(f"{URL}/{row.pk}{path}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "not_found")


@pytest.mark.parametrize(("path", "body"), WRITES)
def test_another_teams_allocation_is_not_there_to_change(row, other_team, path, body):
    answer = client(person(other_team, "lead")).post(f"{URL}/{row.pk}{path}", body, format="json")
    assert answer.status_code == 404
    row.refresh_from_db()
    assert row.desired == Allocation.Desired.HELD


def test_another_teams_project_cannot_be_asked_in(row, other_team):
    body = {"project": "vision-train", "offering": "l40s/whole"}
    api = client(person(other_team, "lead"))
    assert [api.post(path, body, format="json").status_code for path in (URL, f"{URL}/preview")] == [404, 404]


def test_lists_show_own_teams_only(row, other_team):
    elsewhere = tenants.create_project(SYSTEM, other_team, "language-train", "Language training")
    theirs = person(other_team)
    allocate(theirs, elsewhere)
    assert [found["id"] for found in client(theirs).get(URL).json()["results"]] != [str(row.pk)]
    assert client(theirs).get(f"{URL}?team=vision").json()["results"] == []


@pytest.mark.parametrize(
    ("role", "release", "ask"),
    [("viewer", 403, 403), ("member", 403, 201), ("lead", 200, 201)],
)
def test_what_a_role_may_do_with_anothers_allocation(row, team, role, release, ask):
    api = client(person(team, role))
    assert api.get(f"{URL}/{row.pk}").status_code == 200
    assert api.post(URL, {"project": "vision-train", "offering": "l40s/whole"}, format="json").status_code == ask
    assert api.post(f"{URL}/{row.pk}/release", {}, format="json").status_code == release


@pytest.mark.parametrize(("role", "read", "release"), [("auditor", 200, 403), ("operator", 200, 200)])
def test_what_platform_staff_may_do(row, role, read, release):
    api = client(person(platform_role=role))
    assert api.get(f"{URL}/{row.pk}").status_code == read
    assert api.post(f"{URL}/{row.pk}/release", {}, format="json").status_code == release


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_readers_get_no_kubeconfig(row, team, role):
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value)
    reader = person(team, role) if role == "viewer" else person(platform_role=role)
    answer = client(reader).get(f"{URL}/{row.pk}/connect")
    assert (answer.status_code, answer.json()["reason"]) == (403, "role_missing")


def test_a_token_that_only_reads_gets_no_kubeconfig(row, owner):
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value)
    answer = client(owner, "read").get(f"{URL}/{row.pk}/connect")
    assert answer.status_code == 403
    assert "request" in answer.json()["detail"]


@pytest.mark.parametrize("phase", [Phase.QUEUED, Phase.STARTING, Phase.RELEASING, Phase.SCHEDULED])
def test_only_what_is_held_can_be_connected_to(row, owner, phase):
    Allocation.objects.filter(pk=row.pk).update(phase=phase.value)
    answer = client(owner).get(f"{URL}/{row.pk}/connect")
    assert (answer.status_code, answer.json()["reason"]) == (409, "wrong_phase")


def test_without_a_cluster_connecting_asks_to_come_back(row, owner):
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value)
    answer = client(owner).get(f"{URL}/{row.pk}/connect")
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0


def test_a_token_that_only_reads_asks_for_nothing(owner, row):
    body = {"project": "vision-train", "offering": "l40s/whole"}
    assert client(owner, "read").post(URL, body, format="json").status_code == 403


@pytest.mark.parametrize(("role", "status"), [("member", 403), ("lead", 201)])
def test_critical_priority_needs_a_lead(owner, row, team, role, status):
    body = {"project": "vision-train", "offering": "l40s/whole", "priority": "critical"}
    assert client(person(team, role)).post(URL, body, format="json").status_code == status


def test_without_a_token_there_is_nothing(row):
    from rest_framework.test import APIClient

    assert APIClient().get(f"{URL}/{row.pk}").status_code == 401
