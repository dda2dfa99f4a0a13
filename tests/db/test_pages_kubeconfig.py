"""The page of a person's kubeconfig for a project."""

import pytest

from portal.tenants import members, services, structure
from portal.tenants.actors import SYSTEM
from tests.support.given_tokens import give_tokens
from tests.support.pages import browser_of, text
from tests.support.people import person

PAGE = "/projects/vision-train/kubeconfig"


def test_it_lists_every_project_that_the_person_reaches_with_the_role_there(team, other_team, project):
    services.create_project(SYSTEM, other_team, "language-chat", "Chat")
    member = person(team)
    members.add(SYSTEM, other_team, member.username, "viewer")
    page = text(browser_of(member).get(PAGE))
    assert "It is no restriction." in page
    assert "Can queue Jobs and run pods on active allocations" in page
    assert "language-chat" in page
    assert "Can view everything except Secrets" in page


def test_the_teams_page_leads_members_and_viewers_there_and_operators_not(team, project):
    assert PAGE in text(browser_of(person(team, "viewer")).get("/teams/vision"))
    operator = browser_of(person(platform_role="operator"))
    assert PAGE not in text(operator.get("/teams/vision"))
    assert operator.get(PAGE).status_code == 403


def test_an_archived_project_has_none(team, project):
    lead = person(team, "lead")
    structure.archive_project(SYSTEM, project)
    assert browser_of(lead).get(PAGE).status_code == 409
    assert PAGE not in text(browser_of(lead).get("/teams/vision"))


@pytest.mark.parametrize(("format_", "has_token"), [("exec", False), ("token", True)])
def test_no_cache_keeps_the_file(team, project, monkeypatch, format_, has_token):
    give_tokens(monkeypatch)
    answer = browser_of(person(team)).post(PAGE, {"format": format_})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert (b"token: t1" in answer.content) is has_token
