"""People, their platform roles and tokens, and presets, over REST as operators manage them in the admin."""

from datetime import timedelta

import pytest

from portal.core.models import AuditEntry
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from quotas.catalog.models import Preset
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
V1 = "/api/v1"
PASSWORD = "a long sentence to sign in with"


@pytest.fixture
def boss(db) -> User:
    return person(platform_role="operator")


@pytest.fixture
def operator(boss):
    return client(boss)


def patch(api, path, body):
    return api.patch(f"{V1}/{path}", body, format="json", headers={"If-Match": api.get(f"{V1}/{path}")["ETag"]})


def test_an_operator_creates_a_person_who_signs_in(operator, client):
    body = {"username": "ada", "password": PASSWORD, "email": "ada@example.org", "platform_role": "auditor"}
    made = operator.post(f"{V1}/people", body, format="json")
    assert made.status_code == 201, made.json()
    assert (made.json()["username"], made.json()["platform_role"], made.json()["active"]) == ("ada", "auditor", True)
    assert PASSWORD not in made.content.decode()
    assert client.login(username="ada", password=PASSWORD)
    entry = AuditEntry.objects.get(action="user.create", target="ada")
    assert PASSWORD not in str(entry.after)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("people", {"username": "x", "password": PASSWORD, "platform_role": "operator"}),
        ("people/gone", {"active": True}),
        ("people/gone", {"platform_role": "auditor"}),
    ],
)
def test_a_token_without_all_scopes_gives_nobody_more_than_it_has(boss, path, body):
    User.objects.create(username="gone", is_active=False)
    api = client(boss, "admin", "read")
    answer = patch(api, path, body) if "/" in path else api.post(f"{V1}/{path}", body, format="json")
    assert (answer.status_code, answer.json()["reason"]) == (403, "role_missing")
    assert "all scopes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"username": "ada", "password": "short"}, 400, "password"),
        ({"username": "a b", "password": PASSWORD}, 400, "username"),
        ({"username": "ada", "password": PASSWORD, "platform_role": "lead"}, 400, "platform_role"),
        ({"username": "ada"}, 400, "password"),
    ],
)
def test_a_person_who_cannot_be_is_told_by_the_field(operator, body, status, field):
    answer = operator.post(f"{V1}/people", body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (status, [field])


def test_a_name_is_given_once_and_a_repeated_request_answered_again(operator):
    body, key = {"username": "ada", "password": PASSWORD}, {"Idempotency-Key": "one"}
    first, again = (operator.post(f"{V1}/people", body, format="json", headers=key) for _ in range(2))
    assert (first.status_code, again.status_code, again["Idempotent-Replayed"]) == (201, 201, "true")
    assert operator.post(f"{V1}/people", body, format="json").json()["reason"] == "name_taken"


def test_who_is_deactivated_loses_tokens_and_access(operator, team):
    leaving = person(team, "member")
    api = client(leaving)
    row, _ = services.issue_token(SYSTEM, leaving, "old", ["read"], timedelta(days=1))
    answer = patch(operator, f"people/{leaving.username}", {"active": False})
    assert (answer.status_code, answer.json()["active"]) == (200, False)
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert api.get(f"{V1}/me").status_code == 401


def test_an_operator_gives_and_takes_platform_roles(operator):
    found = person()
    assert (
        patch(operator, f"people/{found.username}", {"platform_role": "operator"}).json()["platform_role"] == "operator"
    )
    assert patch(operator, f"people/{found.username}", {"platform_role": ""}).json()["platform_role"] == ""
    actions = AuditEntry.objects.filter(action="user.save", target=found.username).order_by("pk")
    assert [entry.after for entry in actions] == [{"platform_role": "operator"}, {"platform_role": ""}]


@pytest.mark.parametrize("change", [{"active": False}, {"platform_role": "auditor"}])
def test_the_only_active_operator_stays_one(operator, boss, change):
    User.objects.create(username="away", platform_role="operator", is_active=False)
    answer = patch(operator, f"people/{boss.username}", change)
    assert (answer.status_code, answer.json()["reason"]) == (409, "last_operator")


@pytest.mark.parametrize("role", ["auditor", ""])
def test_nobody_else_changes_people(team, role):
    other = client(person(team, "lead", platform_role=role))
    name = person().username
    assert other.post(f"{V1}/people", {"username": "x", "password": PASSWORD}, format="json").status_code == 403
    assert other.get(f"{V1}/people/{name}").status_code == (200 if role else 403)
    changed = other.patch(f"{V1}/people/{name}", {"active": False}, format="json", headers={"If-Match": "*"})
    assert changed.status_code == 403


def test_an_operator_finds_and_revokes_the_token_of_somebody_else(operator, team):
    other = person(team, "member")
    row, secret = services.issue_token(SYSTEM, other, "leaked", ["read"], timedelta(days=1))
    [listed] = operator.get(f"{V1}/tokens?user={other.username}").json()["results"]
    assert (listed["id"], listed["user"]) == (row.pk, other.username)
    assert operator.get(f"{V1}/tokens/{row.pk}").json() == listed
    assert operator.delete(f"{V1}/tokens/{row.pk}").status_code == 204
    assert operator.get(f"{V1}/tokens/{row.pk}").json()["state"] == "revoked"
    assert AuditEntry.objects.get(action="token.revoke").actor != other.username
    assert secret not in str(listed)


def test_of_others_tokens_nobody_else_hears(team):
    row, _ = services.issue_token(SYSTEM, person(team, "member"), "theirs", ["read"], timedelta(days=1))
    for role in ("lead", "member"):
        api = client(person(team, role))
        assert api.get(f"{V1}/tokens/{row.pk}").status_code == 404
        assert api.delete(f"{V1}/tokens/{row.pk}").status_code == 404
        assert api.get(f"{V1}/tokens?user={row.user.username}").status_code == 403


def test_revoking_the_token_of_somebody_else_needs_scope_admin(boss, team, client):
    row, _ = services.issue_token(SYSTEM, person(team, "member"), "theirs", ["read"], timedelta(days=1))
    _, secret = services.issue_token(SYSTEM, boss, "weak", ["read", "request"], timedelta(days=1))
    assert client.delete(f"{V1}/tokens/{row.pk}", headers={"Authorization": f"Bearer {secret}"}).status_code == 403


def test_an_operator_creates_and_changes_a_preset(operator, fleet_of_two_teams, member):
    made = operator.post(f"{V1}/presets", {"name": "Two L40S", "offering": "l40s/whole", "count": 2}, format="json")
    assert made.status_code == 201, made.json()
    assert made.json()["hours"] == "8"
    id_, reader = made.json()["id"], client(member)
    assert made.json() in reader.get(f"{V1}/presets").json()["results"]
    hidden = patch(operator, f"presets/{id_}", {"hidden": True, "hours": "2.50"}).json()
    assert (hidden["hidden"], hidden["hours"]) == (True, "2.5")
    assert reader.get(f"{V1}/presets/{id_}").status_code == 404
    assert operator.get(f"{V1}/presets/{id_}").json() == hidden
    assert AuditEntry.objects.filter(action="preset.set").count() == 2


def test_a_preset_of_no_offering_or_of_a_name_that_is_taken_is_refused(operator, fleet_of_two_teams):
    body = {"name": "One", "offering": "l40s/whole"}
    assert operator.post(f"{V1}/presets", body, format="json").status_code == 201
    assert operator.post(f"{V1}/presets", body, format="json").json()["reason"] == "name_taken"
    missing = operator.post(f"{V1}/presets", {**body, "name": "Two", "offering": "x/y"}, format="json")
    assert list(missing.json()["errors"]) == ["offering"]
    assert Preset.objects.count() == 1
