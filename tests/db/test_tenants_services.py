import pytest

from demo import people
from portal.core.errors import Invalid, Refused
from portal.core.models import WorkItem
from portal.tenants import members, services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Membership, Project, User
from portal.tenants.project_options import ProjectOptions
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_a_project_is_marked_due_and_named_as_its_namespace(team):
    project = services.create_project(SYSTEM, team, "vision-dev", "Vision development")
    assert project.namespace == "vision-dev"
    assert WorkItem.objects.filter(target="local/project:vision-dev").exists()


@pytest.mark.parametrize("slug", ["", "Vision", "-vision", "vision-", "vi_sion", "1vision", "v" * 41])
def test_a_slug_that_is_no_label_is_refused(team, slug):
    with pytest.raises(Invalid) as refusal:
        services.create_project(SYSTEM, team, slug, "Vision", ProjectOptions(namespace="vision"))
    assert "slug" in refusal.value.errors
    assert not Project.objects.exists()


def test_a_taken_name_is_refused_with_a_way_on(project):
    with pytest.raises(Refused) as refusal:
        services.create_project(SYSTEM, project.team, project.slug, "Again")
    assert refusal.value.reason == "name_taken"
    assert refusal.value.hint


def test_a_member_has_one_role_in_a_team(team, project):
    user = person(team, "member")
    WorkItem.objects.all().delete()
    members.add(SYSTEM, team, user.username, "lead")
    assert Membership.objects.get(user=user).role == "lead"
    assert WorkItem.objects.filter(target="local/project:vision-train").exists()


def test_the_same_role_again_changes_nothing(team, project):
    user = person(team, "member")
    WorkItem.objects.all().delete()
    members.add(SYSTEM, team, user.username, "member")
    assert not WorkItem.objects.exists()


def test_an_unknown_role_is_refused(team):
    with pytest.raises(Invalid, match="viewer, member, lead"):
        members.add(SYSTEM, team, person().username, "owner")


def test_seeding_twice_changes_nothing_and_keeps_the_secrets():
    first = people.seed()
    second = people.seed(first)
    assert second == first
    assert set(first.tokens) == set(people.PEOPLE) == set(first.passwords)
    assert first.namespaces == {
        "vision-train": "vision-train",
        "vision-dev": "vision-dev",
        "language-train": "language-train",
        "language-dev": "language-dev",
    }
    assert User.objects.get(username="vision-member").check_password(first.passwords["vision-member"])


def test_secrets_that_were_lost_are_made_anew():
    people.seed()
    again = people.seed()
    assert User.objects.get(username="auditor").check_password(again.passwords["auditor"])
