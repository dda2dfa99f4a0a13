"""The permission table, checked for every role."""

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.core.errors import Forbidden, NotVisible
from portal.core.reading import read_tables
from portal.tenants import access, members, services
from portal.tenants.actors import SYSTEM
from tests.support.people import person

EXPECTED = {
    # action: who may, in their own team
    "project.connect": "viewer member lead",
    "project.view": "viewer member lead operator auditor",
    "allocation.view": "viewer member lead operator auditor",
    "allocation.request": "member lead operator",
    "allocation.release": "owner lead operator",
    "allocation.extend": "owner lead operator",
    "allocation.approve": "lead operator",
    "allocation.connect": "member lead operator",
    "cost.view": "viewer member lead operator auditor",
    "view.share": "member lead operator",
    "view.delete": "owner lead operator",
    "member.manage": "lead operator",
    "member.add": "operator",
    "person.manage": "operator",
    "project.rename": "lead operator",
    "structure.manage": "operator",
    "limit.manage": "operator",
    "limit.share": "lead operator",
    "catalog.manage": "operator",
    "price.manage": "operator",
    "claim.raw": "operator",
    "audit.view": "lead operator auditor",
    "platform.view": "operator auditor",
    "announcement.manage": "operator",
}
pytestmark = pytest.mark.django_db


@pytest.fixture
def people(team, other_team):
    return {
        "viewer": person(team, "viewer"),
        "member": person(team, "member"),
        "owner": person(team, "member"),
        "lead": person(team, "lead"),
        "operator": person(platform_role="operator"),
        "auditor": person(platform_role="auditor"),
        "stranger": person(other_team, "lead"),
    }


def test_every_action_is_in_the_expectation():
    assert set(EXPECTED) == set(access.PERMISSIONS)


@pytest.mark.parametrize("action", EXPECTED)
def test_each_role_may_do_what_the_table_says_and_no_more(people, team, action):
    allowed = {
        name
        for name, user in people.items()
        if access.can(user, action, team, owner=people["owner"] if name == "owner" else None)
    }
    expected = set(EXPECTED[action].split())
    if "member" in expected:
        expected.add("owner")  # who owns it is a member
    assert allowed == expected


def test_a_member_may_not_release_what_another_made(people, team):
    assert not access.can(people["member"], "allocation.release", team, owner=people["owner"])


def test_who_left_the_team_or_only_reads_now_no_longer_owns(people, team):
    members.add(SYSTEM, team, people["owner"].username, "viewer")
    assert not access.can(people["owner"], "allocation.release", team, owner=people["owner"])
    members.remove(SYSTEM, team, people["owner"].username)
    assert not access.can(people["owner"], "allocation.view", team, owner=people["owner"])


def test_another_team_is_not_visible_and_a_missing_role_is_named(people, team):
    with pytest.raises(NotVisible):
        access.require(people["stranger"], "allocation.view", team)
    with pytest.raises(Forbidden) as refusal:
        access.require(people["viewer"], "allocation.request", team)
    assert "for the role member." in refusal.value.hint
    with pytest.raises(Forbidden, match="needs the platform role operator") as refusal:
        access.require(people["lead"], "price.manage", None)
    assert "Operators give platform roles." in refusal.value.hint


def test_lists_hold_only_what_is_visible(people, project, other_team):
    services.create_project(SYSTEM, other_team, "language-train", "Language training")
    assert {team.slug for team in access.visible_teams(people["member"])} == {"vision"}
    assert {found.slug for found in access.visible_projects(people["stranger"])} == {"language-train"}
    assert access.visible_projects(people["auditor"]).count() == 2
    assert not access.visible_projects(AnonymousUser()).exists()


def test_who_may_no_longer_sign_in_sees_nothing(people, team, project):
    user = people["operator"]
    user.is_active = False
    assert not access.can(user, "project.view", team)
    assert not access.visible_teams(user).exists()


def test_a_project_is_found_by_what_the_person_is_now(people, project):
    user = people["operator"]
    assert access.project_for(user, "vision-train") == project
    for change in ({"platform_role": ""}, {"platform_role": "operator", "is_active": False}):
        vars(user).update(change)
        with pytest.raises(NotVisible):
            access.project_for(user, "vision-train")
        assert read_tables(access.project_slugs(user), access.projects_in_use(user)) == [[], []]


def test_a_project_of_another_team_does_not_exist_for_a_stranger(people, project):
    assert access.project_for(people["member"], "vision-train") == project
    with pytest.raises(NotVisible):
        access.project_for(people["stranger"], "vision-train")


def test_asking_costs_one_query(people, team, django_assert_num_queries):
    with django_assert_num_queries(1):
        access.can(people["member"], "allocation.request", team)


@pytest.mark.parametrize("action", [name for name, roles in access.PERMISSIONS.items() if "viewer" not in roles])
def test_a_refusal_names_who_can_give_the_role_that_is_missing(people, team, action):
    with pytest.raises(Forbidden) as found:
        access.require(people["viewer"], action, team)
    is_of_team = bool(access.PERMISSIONS[action] & access.TEAM_ROLES)
    assert ("lead" in found.value.hint) == is_of_team
    assert (people["operator"].username in found.value.hint) == (not is_of_team)
    assert ("platform role" in found.value.detail) == (not is_of_team)


def test_a_refusal_names_few_of_many_operators(people):
    for _ in range(10):
        person(platform_role="operator")
    with pytest.raises(Forbidden) as found:
        access.require(people["member"], "platform.view", None)
    named = found.value.hint.removesuffix(".").rpartition("Ask ")[2].split(", ")
    assert named == access.operators()[: access.NAMED_OPERATORS]
