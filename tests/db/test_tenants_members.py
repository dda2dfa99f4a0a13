"""What leads may do with the members of their team."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.quotation import named
from portal.tenants import members
from portal.tenants.models import Membership, User
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(team):
    return person(team, "lead")


def role(user: User) -> str:
    return Membership.objects.values_list("role", flat=True).get(user=user)


@pytest.mark.parametrize("given", ["viewer", "member", "lead"])
def test_a_lead_gives_every_role_of_the_team(team, lead, given):
    member = person(team, "member")
    members.set_role(lead, team, member.username, given)
    assert role(member) == given


@pytest.mark.parametrize("given", ["operator", "auditor", "owner", ""])
def test_a_lead_gives_no_other_role(team, lead, given):
    member = person(team, "member")
    with pytest.raises(Invalid, match="viewer, member, lead"):
        members.set_role(lead, team, member.username, given)
    member.refresh_from_db()
    assert member.platform_role == ""


@pytest.mark.parametrize("held", ["viewer", "member"])
def test_who_is_no_lead_gives_and_takes_nothing(team, lead, held):
    with pytest.raises(Forbidden):
        members.set_role(person(team, held), team, lead.username, "viewer")
    with pytest.raises(Forbidden):
        members.remove(person(team, held), team, lead.username)


def test_a_lead_of_another_team_hears_of_nothing(team, other_team, lead):
    with pytest.raises(NotVisible):
        members.set_role(person(other_team, "lead"), team, lead.username, "viewer")


def test_the_last_lead_neither_goes_nor_steps_down(team, lead):
    for leave in (lambda: members.remove(lead, team, lead.username),
                  lambda: members.set_role(lead, team, lead.username, "member")):  # fmt: skip
        with pytest.raises(Refused, match="only lead") as refusal:
            leave()
        assert refusal.value.reason == "last_lead"
        assert "Make someone else lead" in refusal.value.hint
    assert role(lead) == "lead"


def test_one_of_two_leads_may_go(team, lead):
    person(team, "lead")
    members.remove(lead, team, lead.username)
    assert not Membership.objects.filter(user=lead).exists()


@pytest.mark.django_db(transaction=True)
def test_of_leads_who_remove_each_other_at_once_one_stays(team):
    leads = [person(team, "lead") for _ in range(4)]
    together = Barrier(len(leads))

    def remove_the_next(number: int) -> bool:
        together.wait()
        try:
            members.remove(leads[number], team, leads[(number + 1) % len(leads)].username)
        except (Refused, NotVisible):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(leads)) as pool:
        done = list(pool.map(remove_the_next, range(len(leads))))
    left = Membership.objects.filter(team=team, role="lead").count()
    assert left == len(leads) - sum(done) >= 1


@pytest.mark.django_db(transaction=True)
def test_leads_who_demote_each_other_at_once_leave_one(team):
    leads = [person(team, "lead") for _ in range(4)]
    together = Barrier(len(leads))

    def demote_the_next(number: int) -> int:
        api, next_ = client(leads[number]), leads[(number + 1) % len(leads)]
        path = f"/api/v1/members/vision/{next_.username}"
        tag = api.get(path)["ETag"]
        together.wait()
        try:
            return api.put(path, {"role": "member"}, format="json", headers={"If-Match": tag}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(leads)) as pool:
        done = list(pool.map(demote_the_next, range(len(leads))))
    left = Membership.objects.filter(team=team, role="lead").count()
    assert set(done) <= {200, 403, 409}
    assert left == len(leads) - done.count(200) >= 1


def test_a_lead_who_is_not_active_does_not_count(team, lead):
    gone = person(team, "lead")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    with pytest.raises(Refused, match="only lead"):
        members.remove(lead, team, lead.username)
    members.remove(lead, team, gone.username)


def test_an_operator_takes_the_last_lead_away(team, lead):
    members.remove(person(platform_role="operator"), team, lead.username)
    assert not Membership.objects.filter(team=team).exists()


def test_a_lead_hears_the_same_of_who_is_no_member_and_of_who_does_not_exist(team, lead):
    stranger = person().username
    told = []
    for username in (stranger, "nobody", "no\x00body"):
        with pytest.raises(NotVisible) as unseen:
            members.set_role(lead, team, username, "member")
        told.append(unseen.value.detail.replace(named(username), "NAME"))
        with pytest.raises(Forbidden) as refusal:
            members.add(lead, team, username, "member")
        assert "POST /invitations" in refusal.value.hint
    assert len(set(told)) == 1
    assert not Membership.objects.filter(user__username=stranger).exists()


def test_an_operator_adds_without_an_invitation(team):
    newcomer = person()
    members.add(person(platform_role="operator"), team, newcomer.username, "member")
    assert role(newcomer) == "member"


def test_nobody_is_added_who_is_not_there_or_not_active(team):
    operator = person(platform_role="operator")
    gone = person()
    User.objects.filter(pk=gone.pk).update(is_active=False)
    for username, words in ((gone.username, "not active"), ("nobody", "Nobody is called"), ("no\x00body", "Nobody")):
        with pytest.raises(Invalid, match=words):
            members.add(operator, team, username, "member")


def test_removing_who_is_not_there_changes_nothing(team, lead):
    members.remove(lead, team, "nobody")
    members.remove(lead, team, person().username)
    assert role(lead) == "lead"
