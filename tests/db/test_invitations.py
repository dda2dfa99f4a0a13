"""Leads invite; the answer does not reveal who exists; the person accepts or declines."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.models import AuditEntry
from portal.tenants import invitations
from portal.tenants.models import Invitation, Membership, User
from tests.support.people import client, person
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(team):
    return person(team, "lead")


@pytest.fixture
def newcomer():
    return person()


def audited() -> list[str]:
    entries = AuditEntry.objects.filter(action__startswith="invitation.").order_by("pk")
    return [f"{entry.actor} {entry.action} {entry.target} of {entry.team}" for entry in entries]


def test_who_accepts_is_in_the_team_and_the_invitation_is_gone(team, lead, newcomer):
    row = invitations.invite(lead, team, newcomer.username, "member")
    assert [found.pk for found in invitations.received(newcomer)] == [row.pk]
    assert invitations.accept(newcomer, row.pk).role == "member"
    assert not Invitation.objects.exists()
    name = newcomer.username
    assert audited() == [
        f"{lead.username} invitation.create vision/{name} of vision",
        f"{name} invitation.accept vision/{name} of vision",
    ]


def test_an_invitation_by_e_mail_reaches_who_has_the_address_however_it_is_written(team, lead, newcomer):
    User.objects.filter(pk=newcomer.pk).update(email="Ada@example.org")
    newcomer.refresh_from_db()
    row = invitations.invite(lead, team, " ada@Example.org ", "viewer")
    assert [found.pk for found in invitations.received(newcomer)] == [row.pk]
    assert list(invitations.received(person())) == []


def test_who_has_no_e_mail_address_is_not_everybody(team, lead, newcomer):
    with pytest.raises(Invalid):
        invitations.invite(lead, team, "  ", "viewer")
    assert list(invitations.received(newcomer)) == []


def test_who_declines_stays_out(team, lead, newcomer):
    row = invitations.invite(lead, team, newcomer.username, "member")
    invitations.decline(newcomer, row.pk)
    assert not Invitation.objects.exists()
    assert not Membership.objects.filter(user=newcomer).exists()
    assert "invitation.decline" in audited()[-1]


def test_what_is_withdrawn_or_over_cannot_be_accepted(team, lead, newcomer, settings):
    row = invitations.invite(lead, team, newcomer.username, "member")
    invitations.withdraw(lead, row.pk)
    with pytest.raises(NotVisible):
        invitations.accept(newcomer, row.pk)
    assert "invitation.withdraw" in audited()[-1]
    row = invitations.invite(lead, team, newcomer.username, "member")
    with clock.frozen(clock.now() + timedelta(days=settings.INVITATION_DAYS, seconds=1)):
        with pytest.raises(NotVisible):
            invitations.accept(newcomer, row.pk)
        assert list(invitations.pending(lead)) == []


def test_nobody_answers_for_another(team, lead, newcomer):
    row = invitations.invite(lead, team, newcomer.username, "member")
    for answer in (invitations.accept, invitations.decline):
        with pytest.raises(NotVisible):
            answer(person(), row.pk)
    assert Invitation.objects.exists()


def test_a_second_invitation_takes_the_place_of_the_first(team, lead, newcomer):
    invitations.invite(lead, team, newcomer.username, "viewer")
    row = invitations.invite(lead, team, newcomer.username, "member")
    assert [(found.pk, found.role) for found in Invitation.objects.all()] == [(row.pk, "member")]


def test_accepting_takes_no_role_away(team, lead):
    other = person(team, "lead")
    User.objects.filter(pk=other.pk).update(email="ada@example.org")
    other.refresh_from_db()
    row = invitations.invite(lead, team, "ada@example.org", "viewer")
    assert invitations.accept(other, row.pk).role == "lead"
    assert not Invitation.objects.exists()


def test_the_invitation_of_who_leads_no_more_is_void(team, lead, newcomer):
    row = invitations.invite(lead, team, newcomer.username, "lead")
    Membership.objects.filter(user=lead).update(role="member")
    with pytest.raises(Refused, match="no longer leads") as refusal:
        invitations.accept(newcomer, row.pk)
    assert "invite you again" in refusal.value.hint
    assert not Membership.objects.filter(user=newcomer).exists()


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_who_is_no_lead_neither_invites_nor_withdraws_nor_reads(team, lead, newcomer, role):
    row, user = invitations.invite(lead, team, newcomer.username, "member"), person(team, role)
    with pytest.raises(Forbidden):
        invitations.invite(user, team, "ben", "member")
    with pytest.raises(Forbidden):
        invitations.withdraw(user, row.pk)
    assert list(invitations.pending(user)) == []


def test_a_lead_of_another_team_hears_of_nothing(team, other_team, lead, newcomer):
    row, other = invitations.invite(lead, team, newcomer.username, "member"), person(other_team, "lead")
    with pytest.raises(NotVisible):
        invitations.invite(other, team, "ben", "member")
    with pytest.raises(NotVisible):
        invitations.withdraw(other, row.pk)
    assert list(invitations.pending(other)) == []
    assert [found.pk for found in invitations.pending(person(platform_role="operator"))] == [row.pk]


@pytest.mark.parametrize(("invitee", "role"), [("a" * 255, "member"), ("a\x00b", "member"), ("ada", "operator")])
def test_what_no_invitation_can_be_is_named_by_field(team, lead, invitee, role):
    with pytest.raises(Invalid) as refusal:
        invitations.invite(lead, team, invitee, role)
    assert set(refusal.value.errors) == ({"role"} if role == "operator" else {"invitee"})


def test_a_team_has_so_many_invitations_and_no_more(team, lead, monkeypatch):
    monkeypatch.setattr(invitations, "MAX_PENDING", 2)
    for name in ("a", "b", "b"):
        invitations.invite(lead, team, name, "viewer")
    with pytest.raises(Refused, match="2 invitations") as refusal:
        invitations.invite(lead, team, "c", "viewer")
    assert refusal.value.hint == "Withdraw one first."


def test_inviting_who_exists_and_who_does_not_is_the_same_to_the_last_query(team, lead, newcomer):
    """The same answer and the same queries: nobody is looked up."""
    gone = person()
    User.objects.filter(pk=gone.pk).update(is_active=False)
    api, told, asked = client(lead), [], []
    for name in (newcomer.username, gone.username, "nobody"):
        with executed() as statements:
            answer = api.post(
                "/api/v1/invitations", {"team": "vision", "invitee": name, "role": "member"}, format="json"
            )
        body = answer.json()
        told.append((answer.status_code, sorted(body), body["role"], body["team"]))
        asked.append([sql.split()[:4] for sql, _ in statements if "SAVEPOINT" not in sql and "apitoken" not in sql])
    assert told[0] == told[1] == told[2]
    assert told[0][0] == 201
    assert asked[0] == asked[1] == asked[2]


def test_it_all_works_over_rest(team, lead, newcomer):
    leading, own = client(lead), client(newcomer)
    body = {"team": "vision", "invitee": newcomer.username, "role": "member"}
    made = leading.post("/api/v1/invitations", body, format="json").json()
    assert leading.get("/api/v1/invitations?team=vision").json()["results"] == [made]
    assert own.get("/api/v1/invitations").json()["results"] == []
    assert own.get("/api/v1/me/invitations").json()["results"] == [made]
    answer = own.post(f"/api/v1/me/invitations/{made['id']}/accept")
    assert (answer.status_code, answer.json()["role"]) == (200, "member")
    again = leading.post("/api/v1/invitations", body, format="json")
    assert (again.status_code, again.json()["reason"]) == (409, "already_member")
    second = leading.post("/api/v1/invitations", {**body, "invitee": "ben"}, format="json").json()
    assert leading.delete(f"/api/v1/invitations/{second['id']}").status_code == 204
    assert leading.get("/api/v1/invitations").json()["results"] == []


def test_a_lead_is_told_to_invite_where_only_operators_add(team, lead, newcomer):
    body = {"team": "vision", "username": newcomer.username, "role": "member"}
    answers = [
        client(lead).post("/api/v1/members", {**body, "username": name}, format="json")
        for name in (newcomer.username, "nobody")
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert answers[0].json() == answers[1].json()
    assert "POST /invitations" in answers[0].json()["hint"]
