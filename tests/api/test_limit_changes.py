"""Several limits in one change over REST, only as they were previewed; and the matrix of all quotas."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.core.models import AuditEntry, WorkItem
from portal.tenants.models import PlatformRole, Team, User
from quotas.limits.models import Limit, LimitUse
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/limits/changes"
PREVIEW = f"{URL}/preview"
MATRIX = "/api/v1/limits/matrix"
POOL = "l40s/gpu"


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


def quota(team: str, nominal: int, pool: str = POOL, **more: Any) -> dict[str, Any]:
    return {"team": team, "pool": pool, "nominal": nominal, **more}


def token_of(api: APIClient, changes: list[dict[str, Any]]) -> str:
    return api.post(PREVIEW, {"changes": changes}, format="json").json()["token"]


def apply(api: APIClient, changes: list[dict[str, Any]], token: str, **headers: str):
    return api.post(URL, {"changes": changes, "token": token}, format="json", headers=headers)


def nominal(team: str, pool: str = POOL) -> int:
    return Limit.objects.get(team__slug=team, user=None, pool__key=pool).nominal


def hold(row: Allocation) -> None:
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE)


def test_several_limits_are_set_as_they_were_previewed(operator):
    changes = [quota("vision", 1, borrowing=None), quota("language", 5, lending=2)]
    told = operator.post(PREVIEW, {"changes": changes}, format="json").json()
    assert [(one["holder"], one["scope"], one["before"]["nominal"], one["after"]) for one in told["changes"]] == [
        ("vision", POOL, 4, {"nominal": 1, "borrowing": None, "lending": None}),
        ("language", POOL, 4, {"nominal": 5, "borrowing": 0, "lending": 2}),
    ]
    assert (nominal("vision"), nominal("language")) == (4, 4)
    answer = apply(operator, changes, told["token"])
    assert answer.status_code == 200
    assert [row["nominal"] for row in answer.json()["results"]] == [1, 5]
    assert (nominal("vision"), nominal("language")) == (1, 5)
    entries = AuditEntry.objects.filter(action="limit.set").order_by("-id")[:2]
    assert {entry.target for entry in entries} == {f"vision/{POOL}", f"language/{POOL}"}
    assert WorkItem.objects.filter(target="local/platform").exists()


def test_what_was_previewed_at_five_is_not_set_to_zero(operator):
    token = token_of(operator, [quota("vision", 5), quota("language", 5)])
    for other in ([quota("vision", 0), quota("language", 5)], [quota("vision", 5)]):
        refused = apply(operator, other, token)
        assert (refused.status_code, refused.json()["reason"]) == (409, "preview_outdated")
    assert (nominal("vision"), nominal("language")) == (4, 4)


def test_the_order_of_the_changes_does_not_matter(operator):
    changes = [quota("vision", 5), quota("language", 3)]
    assert apply(operator, changes[::-1], token_of(operator, changes)).status_code == 200


def test_a_limit_that_changed_after_the_preview_makes_it_void(operator):
    changes = [quota("vision", 5), quota("language", 5)]
    token = token_of(operator, changes)
    operator.post("/api/v1/limits", quota("language", 2), format="json")
    assert apply(operator, changes, token).status_code == 409
    assert (nominal("vision"), nominal("language")) == (4, 2)


def test_a_preview_is_of_the_person_who_saw_it(operator):
    changes = [quota("vision", 5)]
    token = token_of(client(person(platform_role=PlatformRole.OPERATOR)), changes)
    assert apply(operator, changes, token).status_code == 409


def test_the_same_key_applies_once_and_answers_the_same(operator):
    changes = [quota("vision", 5)]
    token = token_of(operator, changes)
    first = apply(operator, changes, token, **{"Idempotency-Key": "once"})
    again = apply(operator, changes, token, **{"Idempotency-Key": "once"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()


def test_all_changes_are_previewed_together(operator, ada, project, team):
    """What vision uses beyond its quota is lent by language only as long as language keeps some."""
    operator.post("/api/v1/limits", quota("vision", 1, borrowing=None), format="json")
    hold(allocate(ada, project, count=3))
    alone = quota("vision", 0, borrowing=None)
    told = operator.post(PREVIEW, {"changes": [alone]}, format="json").json()
    assert (told["changes"][0]["borrowed"], told["changes"][0]["over"]) == ("3", "0")
    told = operator.post(PREVIEW, {"changes": [alone, quota("language", 1)]}, format="json").json()
    assert (told["changes"][0]["borrowed"], told["changes"][0]["over"]) == ("3", "2")
    assert {(one["name"], one["before"], one["after"]) for one in told["kueue"]} == {
        ("team-vision", "1", "0"),
        ("team-language", "4", "1"),
    }


def test_a_preview_adds_up_each_pool(operator):
    told = operator.post(PREVIEW, {"changes": [quota("vision", 7), quota("language", 6)]}, format="json").json()
    assert told["pools"] == [{"pool": POOL, "unit": "units", "available": 8, "before": 8, "after": 13}]


def test_a_wrong_amount_is_named_by_its_place_and_nothing_is_set(operator):
    changes = [quota("vision", 1), {"team": "language", "flavor": "l40s", "nominal": 1, "borrowing": 2}]
    answer = operator.post(PREVIEW, {"changes": changes}, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["changes.1.borrowing"])
    assert apply(operator, changes, "none").status_code == 400
    assert nominal("vision") == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ([], "changes"),
        ([quota("vision", -1)], "changes.0.nominal"),
        ([quota("vision", 1), quota("vision", 1, pool="none/gpu")], "changes.1.pool"),
        ([quota("vision", 1), quota("vision", 2)], "changes.1"),
        ([{"nominal": 1}], "changes.0.team"),
        ([quota("vision", 1)] * 201, "changes"),
    ],
)
def test_what_is_wrong_is_said_by_field(operator, changes, field):
    answer = operator.post(PREVIEW, {"changes": changes}, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


def test_a_lead_changes_projects_and_members_together_and_no_team(lead, ada, project, team):
    changes = [
        {"project": project.slug, "nominal": 2},
        {"team": "vision", "member": ada.username, "pool": POOL, "nominal": 1},
    ]
    allocate(ada, project)
    answer = apply(lead, changes, token_of(lead, changes))
    assert [row["used"] for row in answer.json()["results"]] == ["1", "1"]
    assert LimitUse.objects.count() == 2
    refused = [*changes[:1], quota("vision", 9)]
    assert lead.post(PREVIEW, {"changes": refused}, format="json").status_code == 403
    assert apply(lead, refused, "none").status_code == 403


def test_another_teams_limit_is_not_there(lead):
    changes = [quota("vision", 1), quota("language", 1)]
    assert lead.post(PREVIEW, {"changes": changes[1:]}, format="json").status_code == 404
    assert apply(lead, changes[1:], "none").status_code == 404


def test_a_token_without_the_scope_sets_no_teams_limit(operator, ada):
    someone = person(platform_role=PlatformRole.OPERATOR)
    api = client(someone, "read", "approve")
    changes = [quota("vision", 5)]
    assert apply(api, changes, token_of(api, changes)).status_code == 403


def test_the_matrix_has_a_cell_for_each_team_and_pool(operator, ada, project):
    operator.post("/api/v1/limits", quota("vision", 1, borrowing=None), format="json")
    hold(allocate(ada, project, count=3))
    found = operator.get(MATRIX).json()
    assert [(pool["id"], pool["available"], pool["allocated"]) for pool in found["pools"]] == [
        ("h100/gpu", 4, 4),
        (POOL, 8, 5),
    ]
    assert [(row["holder_kind"], row["holder"]) for row in found["results"]] == [
        ("department", "research"),
        ("team", "language"),
        ("team", "vision"),
    ]
    cells = {row["holder"]: row["cells"][1] for row in found["results"]}
    assert cells["vision"] == {
        "pool": POOL,
        "nominal": 1,
        "borrowing": None,
        "lending": None,
        "used": "3",
        "borrowed": "2",
        "lent": "0",
        "over": "0",
    }
    assert (cells["language"]["used"], cells["language"]["lent"]) == ("0", "2")
    assert cells["research"]["used"] == "3"
    operator.post("/api/v1/limits", quota("language", 0), format="json")
    cells = {row["holder"]: row["cells"][1] for row in operator.get(MATRIX).json()["results"]}
    assert {holder: cell["nominal"] for holder, cell in cells.items()} == {"research": None, "language": 0, "vision": 1}


def test_the_matrix_is_narrowed_to_teams_and_pools_by_a_part_of_their_name(operator):
    found = operator.get(MATRIX, {"team": "VIS", "pool": "l40s"}).json()
    assert [pool["id"] for pool in found["pools"]] == [POOL]
    assert [(row["holder"], [cell["pool"] for cell in row["cells"]]) for row in found["results"]] == [
        ("vision", [POOL])
    ]
    assert operator.get(MATRIX, {"team": "nobody"}).json()["results"] == []


def test_a_member_sees_the_own_team_in_the_matrix_and_no_other(ada):
    found = client(ada).get(MATRIX).json()
    assert [row["holder"] for row in found["results"]] == ["vision"]
    assert {(pool["available"], pool["allocated"]) for pool in found["pools"]} == {(None, None)}
