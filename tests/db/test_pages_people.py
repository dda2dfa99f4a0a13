"""The page of people and roles: one's own teams; of all teams for platform roles."""

import pytest
from django.urls import reverse

from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/people"


def names(page: str) -> list[str]:
    """Return the names in the table of members."""
    return [part.partition("<")[0] for part in page.partition('id="staff"')[0].split('<th scope="row">')[1:]]


def test_a_member_sees_the_people_of_the_own_teams_as_rest_lists_them(team, other_team, project):
    ada, lead = person(team), person(team, "lead")
    stranger = person(other_team)
    page = text(browser_of(ada).get(URL))
    assert names(page) == sorted([ada.username, lead.username])
    assert stranger.username not in page
    assert project.slug in page
    found = client(ada).get("/api/v1/members").json()["results"]
    assert sorted(row["username"] for row in found) == names(page)


def test_an_auditor_finds_people_and_teams_by_a_part_of_their_name(team, other_team):
    ada, ben = person(team), person(other_team, "lead")
    browser = browser_of(person(platform_role=PlatformRole.AUDITOR))
    assert names(text(browser.get(URL))) == sorted([ada.username, ben.username])
    assert names(text(browser.get(URL, {"q": other_team.slug[:5]}))) == [ben.username]
    assert names(text(browser.get(URL, {"q": ada.username}))) == [ada.username]
    assert "No person or team matches “nobody”." in text(browser.get(URL, {"q": "nobody"}))


def test_platform_staff_see_who_has_a_platform_role_as_rest_lists_them(team):
    auditor, operator = (person(platform_role=role) for role in (PlatformRole.AUDITOR, PlatformRole.OPERATOR))
    members.add(SYSTEM, team, operator.username, "lead")
    expected = [
        {"username": one.username, "platform_role": one.platform_role, "active": True}
        for one in sorted((auditor, operator), key=lambda one: one.username)
    ]
    assert client(auditor).get("/api/v1/platform-roles").json()["results"] == expected
    staff = text(browser_of(auditor).get(URL)).partition('id="staff"')[2]
    for row in expected:
        assert f'<th scope="row">{row["username"]}</th><td data-label="Role">{row["platform_role"]}</td>' in staff
    found = text(browser_of(auditor).get(URL, {"q": operator.username})).partition('id="staff"')[2]
    assert auditor.username not in found
    page = text(browser_of(person(team)).get(URL))
    assert "Platform roles" not in page
    assert '<td data-label="Role">lead</td>\n<td data-label="Platform role">operator</td>' in page


def test_a_person_in_no_team_is_told_what_to_do():
    assert "You are in no team." in text(browser_of(person()).get(URL))


def test_the_page_takes_as_many_queries_for_many_people(team, project):
    browser = browser_of(person(team))

    def grow():
        for _ in range(60):
            person(team)
        tenants.create_project(SYSTEM, team, "vision-dev", "Development")

    assert_constant(lambda: browser.get(URL), grow, at_most=10)
    page = text(browser.get(URL))
    assert "1 to 50 of 61" in page
    assert "page=2" in page


def test_the_teams_page_leads_to_it(team, other_team):
    ada = person(team)
    members.add(SYSTEM, other_team, ada.username, "viewer")
    assert reverse("people") in text(browser_of(ada).get(reverse("teams")))
