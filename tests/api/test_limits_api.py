"""Limits over REST: seen by the team, set by operators for teams and by leads for projects and members."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole, Project, Team, User
from quotas.limits.models import Limit, LimitUse
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person
from tests.support.queued import GPU, job

pytestmark = pytest.mark.django_db
URL = "/api/v1/limits"


@pytest.fixture
def ada(team: Team, other_team: Team) -> User:
    fleet(team, other_team)
    return person(team)


@pytest.fixture
def lead(ada: User, team: Team) -> APIClient:
    return client(person(team, "lead"))


@pytest.fixture
def operator(ada: User) -> APIClient:
    return client(person(platform_role=PlatformRole.OPERATOR))


def put(api: APIClient, id_: int, **terms: Any):
    tag = api.get(f"{URL}/{id_}")["ETag"]
    return api.put(f"{URL}/{id_}", terms, format="json", headers={"If-Match": tag})


def test_a_team_sees_its_limits_and_no_others(lead):
    found = lead.get(URL, {"limit": 200}).json()["results"]
    assert {row["holder"] for row in found} == {"vision"}
    assert found[0] == {
        "id": found[0]["id"],
        "holder_kind": "team",
        "holder": "vision",
        "scope_kind": "pool",
        "scope": "h100/gpu",
        "unit": "units",
        "nominal": 2,
        "borrowing": 0,
        "lending": None,
        "used": None,
        "enforced_by": "kueue",
    }


def test_another_teams_limit_is_not_there(lead, other_team):
    other = Limit.objects.get(team=other_team, pool__key="l40s/gpu")
    assert lead.get(f"{URL}/{other.pk}").status_code == 404
    answer = lead.post(URL, {"team": "language", "pool": "l40s/gpu", "nominal": 1}, format="json")
    assert answer.status_code == 404


def test_an_operator_lets_a_team_borrow_and_kueue_is_told(operator, team):
    row = Limit.objects.get(team=team, pool__key="l40s/gpu")
    WorkItem.objects.all().delete()
    assert put(operator, row.pk, nominal=4, borrowing=None, lending=1).json()["borrowing"] is None
    assert WorkItem.objects.filter(target="local/platform").exists()
    assert operator.get(f"{URL}/{row.pk}").json()["lending"] == 1


def test_a_change_needs_the_version_that_was_read(operator, team):
    row = Limit.objects.get(team=team, pool__key="l40s/gpu")
    assert operator.put(f"{URL}/{row.pk}", {"nominal": 1}, format="json").status_code == 428
    stale = operator.get(f"{URL}/{row.pk}")["ETag"]
    put(operator, row.pk, nominal=5)
    again = operator.put(f"{URL}/{row.pk}", {"nominal": 1}, format="json", headers={"If-Match": stale})
    assert again.status_code == 412


def test_a_lead_shares_out_among_members_but_does_not_change_the_teams_own(lead, ada, team):
    mine = lead.post(URL, {"team": "vision", "member": ada.username, "nominal": 2}, format="json")
    assert mine.status_code == 201
    assert (mine.json()["holder"], mine.json()["scope"]) == (f"vision/{ada.username}", "all")
    assert lead.post(URL, {"team": "vision", "flavor": "l40s", "nominal": 2}, format="json").status_code == 403


def test_a_member_sets_no_limit(ada, project):
    answer = client(ada).post(URL, {"project": project.slug, "nominal": 2}, format="json")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"nominal": 1}, "team"),
        ({"team": "vision", "project": "vision-train", "nominal": 1}, "team"),
        ({"team": "vision", "pool": "l40s/gpu", "flavor": "l40s", "nominal": 1}, "flavor"),
        ({"team": "vision", "pool": "none/gpu", "nominal": 1}, "pool"),
        ({"team": "vision", "member": "nobody", "nominal": 1}, "member"),
        ({"team": "vision", "flavor": "l40s", "nominal": 1, "borrowing": 2}, "borrowing"),
        ({"team": "vision", "flavor": "l40s", "nominal": -1}, "nominal"),
    ],
)
def test_what_is_wrong_is_said_by_field(operator, project, body, field):
    answer = operator.post(URL, body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]


def test_a_full_limit_refuses_and_says_whose_it_is(lead, ada, project):
    lead.post(URL, {"team": "vision", "member": ada.username, "flavor": "l40s", "nominal": 2}, format="json")
    api = client(ada)
    asked = {"project": project.slug, "offering": "l40s/whole"}
    assert api.post("/api/v1/allocations", {**asked, "count": 2}, format="json").status_code == 201
    refused = api.post("/api/v1/allocations", asked, format="json")
    assert refused.status_code == 409
    told = refused.json()
    assert (told["reason"], told["dimension"], told["limit"], told["used"]) == ("limit_exceeded", "member:l40s", 2, 2)
    assert {other["offering"] for other in told["alternatives"]} == {"h100/whole"}
    mine = api.get("/api/v1/offerings", {"project": project.slug}).json()["results"]
    assert {row["id"]: row["mine"]["can_get_now"] for row in mine} == {
        "h100/whole": 2,
        "l40s/whole": 0,
        "h100/claim": 2,
    }


def test_a_limit_that_comes_later_counts_what_is_held(operator, ada, project):
    allocate(ada, project, count=2)
    made = operator.post(URL, {"project": project.slug, "offering": "l40s/whole", "nominal": 1}, format="json")
    assert made.json()["used"] == "2"
    refused = client(ada).post(
        "/api/v1/allocations", {"project": project.slug, "offering": "l40s/whole"}, format="json"
    )
    told = refused.json()
    assert (told["dimension"], told["limit"], told["used"]) == ("project:l40s/whole", 1, 2)
    assert told["hint"] == "Release something first, or ask a lead for more."


def test_a_preview_says_what_is_touched_and_changes_nothing(operator, ada, project, team):
    row = allocate(ada, project, count=2)
    before = list(Limit.objects.order_by("pk").values())
    told = operator.post(f"{URL}/preview", {"project": project.slug, "nominal": 1}, format="json").json()
    assert (told["in_use"], told["over"], told["unit"]) == ("2", "1", "GPUs")
    assert [one["name"] for one in told["allocations"]] == [row.name]
    told = operator.post(f"{URL}/preview", {"team": "vision", "pool": "l40s/gpu", "nominal": 6}, format="json").json()
    assert told["kueue"] == [
        {
            "kind": "ClusterQueue",
            "name": "team-vision",
            "field": "resourceGroups[0].flavors[l40s].resources[nvidia.com/gpu].nominalQuota",
            "before": "4",
            "after": "6",
        }
    ]
    assert list(Limit.objects.order_by("pk").values()) == before
    assert not LimitUse.objects.exists()


def test_a_preview_of_what_kueue_keeps_counts_tenants_own_jobs(operator, team, project):
    job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 3}})
    body = {"team": "vision", "pool": "l40s/gpu", "nominal": 2}
    found = operator.post(f"{URL}/preview", body, format="json").json()
    assert (found["in_use"], found["over"]) == ("3", "1")


def test_what_a_team_borrows_is_told_as_borrowed_and_not_as_too_much(operator, ada, project, team):
    theirs = Limit.objects.get(team=team, pool__key="l40s/gpu")
    put(operator, theirs.pk, nominal=4, borrowing=None)
    hold(allocate(ada, project, count=3))
    body = {"team": "vision", "pool": "l40s/gpu", "nominal": 2, "borrowing": None}
    found = operator.post(f"{URL}/preview", body, format="json").json()
    assert (found["in_use"], found["over"], found["borrowed"]) == ("3", "0", "1")
    assert "3 units are in use, and 1 of them would be borrowed: Kueue may reclaim that, with notice" in found["detail"]
    put(operator, theirs.pk, nominal=0, borrowing=None)
    found = operator.post(f"{URL}/preview", {**body, "nominal": 3}, format="json").json()
    assert (found["over"], found["borrowed"]) == ("0", "0")


def test_a_departments_own_quota_is_there_beside_its_teams(operator, ada, project, team):
    """The teams' quotas are not counted again as the department's."""
    hold(allocate(ada, project, count=4))
    body = {"department": team.department.slug, "pool": "l40s/gpu", "nominal": 2}
    found = operator.post(f"{URL}/preview", body, format="json").json()
    assert (found["in_use"], found["over"], found["borrowed"]) == ("4", "0", "0")
    assert found["detail"] == "What is in use is not affected."


def test_a_limit_is_counted_however_large_it_is(operator, project):
    answer = operator.post(URL, {"project": project.slug, "nominal": 1_000_000}, format="json")
    assert (answer.status_code, answer.json()["used"]) == (201, "0")


@pytest.mark.parametrize("path", ["/api/v1/policies/teams/a%00", "/api/v1/policies/departments/a%00"])
def test_a_name_that_none_can_have_is_not_there(operator, path):
    assert operator.get(path).status_code == 404


def test_a_limit_taken_away_binds_no_more(lead, ada, project):
    made = lead.post(URL, {"project": project.slug, "nominal": 0}, format="json").json()
    asked = {"project": project.slug, "offering": "l40s/whole"}
    assert client(ada).post("/api/v1/allocations", asked, format="json").status_code == 409
    assert lead.delete(f"{URL}/{made['id']}").status_code == 204
    assert client(ada).post("/api/v1/allocations", asked, format="json").status_code == 201


def test_a_request_in_another_project_counts_against_the_same_member(lead, ada, project, team):
    other: Project = tenants.create_project(SYSTEM, team, "vision-dev", "Development")
    lead.post(URL, {"team": "vision", "member": ada.username, "nominal": 1}, format="json")
    allocate(ada, project)
    refused = client(ada).post("/api/v1/allocations", {"project": other.slug, "offering": "l40s/whole"}, format="json")
    assert refused.json()["dimension"] == "member:all"


def test_a_team_competes_as_its_policy_says(operator, lead):
    url = "/api/v1/policies/teams/vision"
    tag = operator.get(url)["ETag"]
    body = {"weight": "2.5", "reclaim": "LowerPriority"}
    made = operator.put(url, body, format="json", headers={"If-Match": tag})
    assert made.json() == {
        "holder_kind": "team",
        "holder": "vision",
        "weight": "2.5",
        "reclaim": "LowerPriority",
        "within": "Never",
    }
    assert (
        operator.put(url, {**body, "reclaim": "x"}, format="json", headers={"If-Match": made["ETag"]}).status_code
        == 400
    )
    assert lead.put(url, body, format="json", headers={"If-Match": "*"}).status_code == 403
    assert lead.get("/api/v1/policies/teams/language").status_code == 404


def test_a_department_has_a_weight_alone(operator, team):
    url = f"/api/v1/policies/departments/{team.department.slug}"
    refused = operator.put(url, {"reclaim": "Never"}, format="json", headers={"If-Match": operator.get(url)["ETag"]})
    assert refused.status_code == 400
    assert "for its teams" in refused.json()["errors"]["reclaim"][0]
    made = operator.put(url, {"weight": "3"}, format="json", headers={"If-Match": operator.get(url)["ETag"]})
    assert made.json()["weight"] == "3"


def test_who_owes_whom_is_told_without_naming_strangers(operator, lead, ada, project, team, other_team):
    theirs = Limit.objects.get(team=team, pool__key="l40s/gpu")
    put(operator, theirs.pk, nominal=1, borrowing=None)
    hold(allocate(ada, project, count=3))
    assert operator.get("/api/v1/lending").json()["results"] == [
        {"pool": "l40s/gpu", "borrower": "vision", "lender": "language", "amount": "2.000000"}
    ]
    assert lead.get("/api/v1/lending").json()["results"][0]["lender"] == ""
    stranger = person(tenants.create_team(SYSTEM, team.department, "speech", "Speech"))
    assert client(stranger).get("/api/v1/lending").json()["results"] == []


def hold(row: Allocation) -> None:
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE)
