from datetime import timedelta

import pytest
from django.db import connection

from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible
from portal.tenants import services, tokens
from portal.tenants.models import ApiToken
from tests.support.people import person

DAY = timedelta(days=1)
pytestmark = pytest.mark.django_db


def test_a_token_finds_its_person():
    user = person()
    row, secret = services.issue_token(user, "ci", ["read"], DAY)
    found = tokens.find(secret)
    assert found == row
    assert found.user == user


def test_nothing_at_rest_can_be_used_as_a_token():
    _, secret = services.issue_token(person(), "ci", ["read"], DAY)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(t)::text FROM tenants_apitoken t")
        stored = cursor.fetchone()[0]
    assert secret not in stored
    assert secret.split("_", 2)[2] not in stored


@pytest.mark.parametrize("wrong", ["", "gpup_", "nonsense", "gpup_000000000000_" + "a" * 43])
def test_what_is_no_token_finds_nobody(wrong):
    assert tokens.find(wrong) is None


def test_a_right_prefix_with_a_wrong_secret_finds_nobody():
    row, _ = services.issue_token(person(), "ci", ["read"], DAY)
    assert tokens.find(f"gpup_{row.prefix}_" + "a" * 43) is None


def test_a_token_ends_on_time():
    row, secret = services.issue_token(person(), "ci", ["read"], DAY)
    with clock.frozen(row.expires_at), pytest.raises(tokens.Expired):
        tokens.find(secret)


def test_a_revoked_token_ends_at_once_and_twice_is_as_once():
    user = person()
    row, secret = services.issue_token(user, "ci", ["read"], DAY)
    services.revoke_token(user, row.pk)
    services.revoke_token(user, row.pk)
    assert tokens.find(secret) is None


def test_with_a_token_those_end_that_were_created_with_it():
    user = person()
    first, _ = services.issue_token(user, "stolen", ["read"], DAY)
    second, _ = services.issue_token(user, "of the thief", ["read"], parent=first)
    _, third = services.issue_token(user, "of the thief, too", ["read"], parent=second)
    _, other = services.issue_token(user, "ci", ["read"], DAY)
    services.revoke_token(user, second.pk)
    assert ApiToken.objects.get(pk=first.pk).revoked_at is None
    services.revoke_token(user, first.pk)
    assert tokens.find(third) is None
    assert tokens.find(other) is not None


def test_a_token_that_was_revoked_meanwhile_creates_none():
    user = person()
    parent, _ = services.issue_token(user, "stolen", ["read"], DAY)
    services.revoke_token(user, parent.pk)
    with pytest.raises(Forbidden):
        services.issue_token(user, "of the thief", ["read"], parent=parent)


def test_another_persons_token_cannot_be_revoked():
    row, secret = services.issue_token(person(), "ci", ["read"], DAY)
    with pytest.raises(NotVisible):
        services.revoke_token(person(), row.pk)
    assert tokens.find(secret) is not None


def test_the_token_of_who_left_is_void():
    user = person()
    _, secret = services.issue_token(user, "ci", ["read"], DAY)
    user.is_active = False
    user.save()
    assert tokens.find(secret) is None


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(days=366), -DAY])
def test_a_token_lives_at_most_a_year(ttl):
    with pytest.raises(Invalid) as refusal:
        services.issue_token(person(), "ci", ["read"], ttl)
    assert "expires_at" in refusal.value.errors


@pytest.mark.parametrize("scopes", [[], ["everything"]])
def test_a_token_has_known_scopes(scopes):
    with pytest.raises(Invalid) as refusal:
        services.issue_token(person(), "ci", scopes, DAY)
    assert "scopes" in refusal.value.errors


def test_use_is_noted_once_a_minute(django_assert_num_queries):
    row, secret = services.issue_token(person(), "ci", ["read"], DAY)
    with clock.frozen(row.created_at):
        tokens.find(secret)
        with django_assert_num_queries(1):
            tokens.find(secret)
    assert ApiToken.objects.get().last_used_at == row.created_at
