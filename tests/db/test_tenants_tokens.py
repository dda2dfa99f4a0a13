from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.db import connection
from django.test import Client

from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible
from portal.core.models import AuditEntry
from portal.tenants import services, tokens
from portal.tenants.actors import SYSTEM
from portal.tenants.models import ApiToken, User
from tests.support.pages import browser_of
from tests.support.people import person

DAY = timedelta(days=1)
OLD, NEW = "a long enough secret", "quite another long secret"
pytestmark = pytest.mark.django_db


def test_a_token_finds_its_person():
    user = person()
    row, secret = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    found = tokens.find(secret)
    assert found == row
    assert found.user == user


def test_nothing_at_rest_can_be_used_as_a_token():
    _, secret = services.issue_token(SYSTEM, person(), "ci", ["read"], DAY)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(t)::text FROM tenants_apitoken t")
        stored = cursor.fetchone()[0]
    assert secret not in stored
    assert secret.split("_", 2)[2] not in stored


@pytest.mark.parametrize("wrong", ["", "gpup_", "nonsense", "gpup_000000000000_" + "a" * 43])
def test_what_is_no_token_finds_nobody(wrong):
    assert tokens.find(wrong) is None


def test_a_right_prefix_with_a_wrong_secret_finds_nobody():
    row, _ = services.issue_token(SYSTEM, person(), "ci", ["read"], DAY)
    assert tokens.find(f"gpup_{row.prefix}_" + "a" * 43) is None


def test_a_token_ends_on_time():
    row, secret = services.issue_token(SYSTEM, person(), "ci", ["read"], DAY)
    with clock.frozen(row.expires_at), pytest.raises(tokens.Expired):
        tokens.find(secret)


def test_a_revoked_token_ends_at_once_and_twice_is_as_once():
    user = person()
    row, secret = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    services.revoke_token(SYSTEM, user, row.pk)
    services.revoke_token(SYSTEM, user, row.pk)
    assert tokens.find(secret) is None


def test_with_a_token_those_end_that_were_created_with_it():
    user = person()
    first, _ = services.issue_token(SYSTEM, user, "stolen", ["read"], DAY)
    second, _ = services.issue_token(SYSTEM, user, "of the thief", ["read"], parent=first)
    _, third = services.issue_token(SYSTEM, user, "of the thief, too", ["read"], parent=second)
    _, other = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    services.revoke_token(SYSTEM, user, second.pk)
    assert ApiToken.objects.get(pk=first.pk).revoked_at is None
    services.revoke_token(SYSTEM, user, first.pk)
    assert tokens.find(third) is None
    assert tokens.find(other) is not None


def test_a_token_that_was_revoked_meanwhile_creates_none():
    user = person()
    parent, _ = services.issue_token(SYSTEM, user, "stolen", ["read"], DAY)
    services.revoke_token(SYSTEM, user, parent.pk)
    with pytest.raises(Forbidden):
        services.issue_token(SYSTEM, user, "of the thief", ["read"], parent=parent)


def test_another_persons_token_cannot_be_revoked():
    row, secret = services.issue_token(SYSTEM, person(), "ci", ["read"], DAY)
    with pytest.raises(NotVisible):
        services.revoke_token(SYSTEM, person(), row.pk)
    assert tokens.find(secret) is not None


def test_the_token_of_who_left_is_void():
    user = person()
    _, secret = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    user.is_active = False
    user.save()
    assert tokens.find(secret) is None


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(days=366), -DAY])
def test_a_token_lives_at_most_a_year(ttl):
    with pytest.raises(Invalid) as refusal:
        services.issue_token(SYSTEM, person(), "ci", ["read"], ttl)
    assert "expires_at" in refusal.value.errors


@pytest.mark.parametrize("scopes", [[], ["everything"]])
def test_a_token_has_known_scopes(scopes):
    with pytest.raises(Invalid) as refusal:
        services.issue_token(SYSTEM, person(), "ci", scopes, DAY)
    assert "scopes" in refusal.value.errors


def test_use_is_noted_once_a_minute(django_assert_num_queries):
    row, secret = services.issue_token(SYSTEM, person(), "ci", ["read"], DAY)
    with clock.frozen(row.created_at):
        tokens.find(secret)
        with django_assert_num_queries(1):
            tokens.find(secret)
    assert ApiToken.objects.get().last_used_at == row.created_at


def by_its_owner(user):
    words = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    browser = Client()
    browser.force_login(user)
    assert browser.post("/admin/password_change/", words).status_code == 302


def by_an_operator(user):
    words = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    answer = browser_of(person(platform_role="operator")).post(f"/admin/tenants/user/{user.pk}/password/", words)
    assert answer.status_code == 302


def taken_away(user):
    words = {"usable_password": "false", "password1": "", "password2": ""}
    answer = browser_of(person(platform_role="operator")).post(f"/admin/tenants/user/{user.pk}/password/", words)
    assert answer.status_code == 302


def by_the_command_line(user):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("getpass.getpass", lambda **_: NEW)
        call_command("changepassword", user.username, stdout=StringIO())


def by_the_service(user):
    services.set_password(SYSTEM, user, NEW)


def leaves(user):
    user.is_active = False
    services.save_person(SYSTEM, user, ["is_active"])
    user.is_active = True
    services.save_person(SYSTEM, user, ["is_active"])


@pytest.mark.parametrize("end", [by_its_owner, by_an_operator, taken_away, by_the_command_line, by_the_service, leaves])
def test_tokens_end_with_the_password_and_when_their_owner_leaves(end):
    user, other = services.create_user(SYSTEM, "otto", OLD, platform_role="operator"), person(platform_role="operator")
    _, secret = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    _, of_other = services.issue_token(SYSTEM, other, "ci", ["read"], DAY)
    end(user)
    assert tokens.find(secret) is None
    assert tokens.find(of_other) is not None
    assert AuditEntry.objects.filter(action="token.revoke").count() == 1


def test_a_password_that_is_hashed_anew_as_its_owner_signs_in_ends_no_token(settings):
    settings.PASSWORD_HASHERS = [*settings.PASSWORD_HASHERS, "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    user = services.create_user(SYSTEM, "otto", OLD)
    _, secret = services.issue_token(SYSTEM, user, "ci", ["read"], DAY)
    User.objects.filter(pk=user.pk).update(password=make_password(OLD, hasher="pbkdf2_sha256"))
    assert Client().post("/login", {"username": "otto", "password": OLD}).status_code == 302
    assert User.objects.get(pk=user.pk).password.startswith("argon2")
    assert tokens.find(secret) is not None
