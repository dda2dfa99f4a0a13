import base64

import pytest
from rest_framework.test import APIRequestFactory

from portal.api.http import etag
from portal.core.errors import Problem
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from tests.support.people import client, person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(team, other_team):
    for index in range(5):
        services.create_project(SYSTEM, team, f"vision-{index}", f"Vision {index}")
    services.create_project(SYSTEM, other_team, "language-train", "Language training")
    return client(person(team))


def test_pages_follow_each_other_and_hold_each_row_once(api):
    found, url = [], "/api/v1/projects?limit=2"
    while url:
        page = api.get(url).json()
        assert set(page) == {"next", "previous", "results"}
        found += [row["slug"] for row in page["results"]]
        url = page["next"]
    assert found == [f"vision-{index}" for index in range(5)]


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5", "201", "1000000000000"])
def test_a_limit_that_no_page_has_is_refused(api, limit):
    answer = api.get(f"/api/v1/projects?limit={limit}")
    assert answer.status_code == 400
    assert answer.json()["errors"]["limit"] == ["Use a whole number from 1 to 200."]
    assert api.get("/api/v1/projects?limit=200").status_code == 200


@pytest.mark.parametrize("cursor", ["%25%25", "x", "%00", "bz1hYmM=", "ä"])
def test_a_cursor_of_nonsense_is_no_first_page(api, cursor):
    answer = api.get(f"/api/v1/projects?cursor={cursor}")
    assert answer.status_code == 400
    assert "cursor" in answer.json()["errors"]


@pytest.mark.parametrize(
    ("path", "position"),
    [("limits", "p=abc"), ("tokens", "p=9999-99-99&p=1"), ("projects", "p=%00"), ("jobs", "p=%00&p=x")],
)
def test_a_cursor_with_a_position_of_nonsense_is_an_error(api, path, position):
    cursor = base64.b64encode(position.encode()).decode()
    answer = api.get(f"/api/v1/{path}", {"cursor": cursor})
    assert answer.status_code == 400
    assert "cursor" in answer.json()["errors"]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("departments", {"slug": "research", "name": "Research", "parent": None}),
        ("teams", {"slug": "vision", "name": "Vision", "department": "research"}),
    ],
)
def test_only_what_is_visible_is_listed(api, path, row):
    assert api.get(f"/api/v1/{path}").json()["results"] == [row]


def test_members_of_another_team_are_not_listed(api, other_team):
    person(other_team, "lead")
    rows = api.get("/api/v1/members").json()["results"]
    assert [row["team"] for row in rows] == ["vision"]
    assert api.get("/api/v1/members?team=language").json()["results"] == []


@pytest.mark.parametrize("path", ["departments", "teams", "projects", "members"])
def test_a_list_takes_the_same_queries_for_more_rows(team, project, path):
    auditor = client(person(platform_role="auditor"))
    url = f"/api/v1/{path}"

    def grow():
        for index in range(49):
            services.create_department(SYSTEM, f"department-{index}", "More", parent=team.department)
            more = services.create_team(SYSTEM, team.department, f"team-{index}", "More")
            services.create_project(SYSTEM, more, f"project-{index}", "More")
            person(more)

    assert_constant(lambda: auditor.get(url), grow, at_most=5)
    assert len(auditor.get(url).json()["results"]) >= 49


@pytest.mark.parametrize(
    ("given", "status"), [(None, 428), ('"6"', 412), ('"7"', None), ("*", None), ('"6", "7"', None)]
)
def test_a_change_names_the_version_it_changes(given, status):
    headers = {"If-Match": given} if given else {}
    request = APIRequestFactory().put("/", headers=headers)
    try:
        etag.require_match(request, 7)
    except Problem as problem:
        assert problem.status == status
    else:
        assert status is None
