"""Departments, teams, projects and members over REST."""

from datetime import date

import pytest

from portal.core.models import AuditEntry
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, HierarchyChange, Membership, Project, Team
from quotas.costs import bills
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
V1 = "/api/v1"


@pytest.fixture
def operator(db):
    return client(person(platform_role="operator"))


def put(api, path, body, match=None):
    tag = match or api.get(f"{V1}/{path}")["ETag"]
    return api.put(f"{V1}/{path}", body, format="json", headers={"If-Match": tag})


def test_an_operator_makes_a_department_a_team_and_a_project(operator):
    said = [
        operator.post(f"{V1}/departments", {"slug": "science", "name": "Science"}, format="json"),
        operator.post(f"{V1}/departments", {"slug": "bio", "name": "Bio", "parent": "science"}, format="json"),
        operator.post(f"{V1}/teams", {"slug": "cells", "name": "Cells", "department": "bio"}, format="json"),
        operator.post(f"{V1}/projects", {"slug": "cells-dev", "name": "Cells", "team": "cells"}, format="json"),
    ]
    assert [(answer.status_code, "ETag" in answer) for answer in said] == [(201, True)] * 4
    assert said[1].json() == {"slug": "bio", "name": "Bio", "parent": "science"}
    assert said[2].json()["department"] == "bio"
    made = said[3].json()
    assert (made["namespace"], made["guard"], made["adopted"]) == ("cells-dev", "enforce", False)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("departments", {"slug": "Bio", "name": "Bio"}, "slug"),
        ("departments", {"slug": "bio", "name": "Bio", "parent": "nowhere"}, "parent"),
        ("teams", {"slug": "cells", "name": "Cells", "department": "nowhere"}, "department"),
        ("projects", {"slug": "p", "name": "P", "team": "nowhere"}, "team"),
        ("projects", {"slug": "p", "name": "P", "team": "vision", "namespace": "kube-system"}, "namespace"),
        ("projects", {"slug": "p", "name": "P", "team": "vision", "egress": "moon"}, "egress"),
        ("projects", {"slug": "p", "name": "P", "team": "vision", "quota": 8}, "quota"),
        ("members", {"team": "vision", "username": "nobody", "role": "member"}, "username"),
        ("members", {"team": "vision", "username": "nobody", "role": "operator"}, "role"),
    ],
)
def test_what_cannot_be_is_told_by_its_field(operator, team, path, body, field):
    answer = operator.post(f"{V1}/{path}", body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize("path", ["departments/research", "teams/vision", "projects/vision-train"])
def test_a_change_names_the_version_it_changes(operator, project, path):
    tag = operator.get(f"{V1}/{path}")["ETag"]
    assert operator.put(f"{V1}/{path}", {"name": "New"}, format="json").status_code == 428
    assert put(operator, path, {"name": "New"}, tag).json()["name"] == "New"
    assert put(operator, path, {"name": "Newer"}, tag).status_code == 412


def test_a_department_moves_and_never_into_itself(operator, team):
    services.create_department(SYSTEM, "science", "Science")
    assert put(operator, "departments/research", {"parent": "science"}).json()["parent"] == "science"
    assert put(operator, "departments/science", {"parent": "research"}).status_code == 400
    assert put(operator, "departments/research", {"parent": None}).json()["parent"] is None


def test_a_team_moves_to_another_department(operator, team):
    services.create_department(SYSTEM, "science", "Science")
    assert put(operator, "teams/vision", {"department": "science"}).json()["department"] == "science"
    assert Team.objects.get().department.slug == "science"


def test_a_lead_names_a_project_and_changes_nothing_else_of_it(team, project):
    lead = client(person(team, "lead"))
    assert put(lead, "projects/vision-train", {"name": "Images"}).json()["name"] == "Images"
    refused = put(lead, "projects/vision-train", {"name": "Other", "egress": "internet"})
    assert refused.status_code == 403
    project.refresh_from_db()
    assert (project.name, project.egress) == ("Images", "none")


def test_what_a_namespace_allows_needs_a_token_for_admin(team, project):
    user = person(platform_role="operator")
    body = {"egress": "cluster", "exposure": "node-port"}
    assert put(client(user, "read", "approve"), "projects/vision-train", body).status_code == 403
    changed = put(client(user), "projects/vision-train", body).json()
    assert {name: changed[name] for name in body} == body


def test_an_operator_adds_and_a_lead_promotes_and_removes_a_member(operator, team):
    lead, newcomer = client(person(team, "lead")), person()
    path = f"members/vision/{newcomer.username}"
    body = {"team": "vision", "username": newcomer.username, "role": "member"}
    assert operator.post(f"{V1}/members", body, format="json").status_code == 201
    assert put(lead, path, {"role": "lead"}).json()["role"] == "lead"
    assert [lead.delete(f"{V1}/{path}").status_code for _ in range(2)] == [204, 204]
    assert lead.get(f"{V1}/{path}").status_code == 404


def test_the_last_lead_is_told_what_would_work(team):
    user = person(team, "lead")
    answer = client(user).delete(f"{V1}/members/vision/{user.username}")
    assert (answer.status_code, answer.json()["reason"]) == (409, "last_lead")
    assert Membership.objects.filter(user=user).exists()


def test_a_guard_is_told_what_it_may_not_become(operator, project):
    answer = operator.post(f"{V1}/projects/vision-train/guard", {"guard": "audit"}, format="json")
    assert (answer.status_code, answer.json()["reason"]) == (409, "wrong_phase")
    assert Project.objects.get().guard == "enforce"


@pytest.mark.parametrize("path", ["departments/no%00where", "teams/no%00where", "projects/no%00where"])
def test_a_name_that_none_can_have_is_not_there(operator, path):
    assert operator.get(f"{V1}/{path}").status_code == 404
    assert not Department.objects.exists()


def test_a_team_that_was_made_by_mistake_is_deleted_with_its_members(operator, team):
    operator.post(f"{V1}/teams", {"slug": "mistake", "name": "Oops", "department": "research"}, format="json")
    body = {"team": "mistake", "username": person(team).username, "role": "member"}
    assert operator.post(f"{V1}/members", body, format="json").status_code == 201
    assert operator.delete(f"{V1}/teams/mistake").status_code == 204
    assert operator.get(f"{V1}/teams/mistake").status_code == 404
    assert not Membership.objects.filter(team__slug="mistake").exists()
    entry = AuditEntry.objects.get(action="team.delete", target="mistake")
    assert entry.before is not None
    assert entry.before["members"] == {body["username"]: "member"}
    again = {"slug": "mistake", "name": "Anew", "department": "research"}
    assert operator.post(f"{V1}/teams", again, format="json").status_code == 201


def test_a_team_that_costs_refer_to_stays(operator, project):
    before = HierarchyChange.objects.count()
    refused = operator.delete(f"{V1}/teams/vision")
    assert (refused.status_code, refused.json()["reason"]) == (409, "wrong_phase")
    assert "project" in refused.json()["detail"]
    assert (Team.objects.filter(slug="vision").exists(), HierarchyChange.objects.count()) == (True, before)


def test_a_team_that_has_a_part_of_fixed_costs_stays(operator, team):
    operator.post(f"{V1}/teams", {"slug": "mistake", "name": "Oops", "department": "research"}, format="json")
    bills.set_shared_cost(
        person(platform_role="operator"), "network", date(2026, 11, 1), "100", "even", teams=["mistake"]
    )
    refused = operator.delete(f"{V1}/teams/mistake")
    assert (refused.status_code, "fixed costs: network" in refused.json()["detail"]) == (409, True)


def test_a_team_that_had_a_quota_stays(operator, other_team, fleet_of_two_teams):
    for row in operator.get(f"{V1}/limits?team=language").json()["results"]:
        assert operator.delete(f"{V1}/limits/{row['id']}").status_code == 204
    assert operator.delete(f"{V1}/teams/language").status_code == 409
