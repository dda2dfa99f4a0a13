"""The application's database role adds to the audit log and reads it; PostgreSQL refuses it anything else."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection
from psycopg import errors, sql

from portal.audit import chain, grants
from portal.audit.entries import audit
from portal.core.models import AuditEntry, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)
ROLE, PASSWORD = "portal_under_test", "only-for-tests"


@pytest.fixture
def role() -> Iterator[str]:
    """Create a role as an administrator would, with one sealed entry in the log."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
    try:
        call_command("grant", ROLE, verbosity=0)
        audit("operator", "test.write", "x")
        chain.seal()
        yield ROLE
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP OWNED BY {ROLE}")
            cursor.execute(f"DROP ROLE {ROLE}")


@contextmanager
def connected() -> Iterator[psycopg.Connection]:
    """Connect to the same database as the role."""
    place = connection.get_connection_params()
    words = {name: place[name] for name in ("host", "port", "dbname") if place.get(name)}
    with psycopg.connect(**words, user=ROLE, password=PASSWORD, autocommit=True) as own:
        yield own


@pytest.mark.parametrize("table", grants.ADDED_ONLY)
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {table} SET {column} = {column}", "DELETE FROM {table}", "TRUNCATE {table} CASCADE", "DROP TABLE {table}"],
)
def test_postgresql_refuses_to_change_the_log(role, table, statement):
    column = "actor" if table == "core_auditentry" else "digest"
    words = sql.SQL(statement).format(table=sql.Identifier(table), column=sql.Identifier(column))
    with connected() as own, pytest.raises(errors.InsufficientPrivilege):
        own.execute(words)
    assert AuditEntry.objects.filter(target="x", seal__position=1).exists()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE core_auditentry DISABLE TRIGGER ALL",
        "SET ROLE portal",
        "CREATE RULE forget AS ON INSERT TO core_auditentry DO INSTEAD NOTHING",
        "DELETE FROM django_migrations",
        "CREATE TABLE mine (id int)",
    ],
)
def test_postgresql_refuses_ways_around(role, statement):
    with connected() as own, pytest.raises(errors.InsufficientPrivilege):
        own.execute(statement)


def test_the_role_cannot_grant_itself_more(role):
    with connected() as own:
        own.execute(f"GRANT UPDATE, DELETE ON core_auditentry TO {ROLE}")  # PostgreSQL warns, and grants nothing
    assert grants.changes_allowed(role) == []


def test_the_role_adds_reads_and_does_the_portals_work(role):
    with connected() as own:
        own.execute(
            "INSERT INTO core_auditentry (at, actor, action, target, team, project, source, request_id) "
            "VALUES (now(), 'a', 'test.write', 'y', '', '', '{}', '')"
        )
        own.execute("INSERT INTO core_heartbeat (name, at) VALUES ('worker', now())")
        own.execute("UPDATE core_heartbeat SET at = now()")
        own.execute("DELETE FROM core_heartbeat")
    assert AuditEntry.objects.filter(target="y").exists()
    assert not Heartbeat.objects.exists()


def test_a_role_that_owns_the_tables_cannot_be_kept_from_them(role):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (owner,) = cursor.fetchone()
    with pytest.raises(ImproperlyConfigured, match=f"{owner} may still change core_auditentry and core_auditseal"):
        grants.grant(owner)


def test_a_name_that_is_none_is_refused_before_it_reaches_the_database(role):
    with pytest.raises(ImproperlyConfigured, match="is no name of a role"):
        grants.grant('x"; DROP TABLE core_auditentry; --')


def test_check_warns_of_a_role_that_may_change_the_log_and_is_silent_of_one_that_may_not(role):
    (warning,) = [found for found in run_checks(databases=["default"]) if found.id == "core.W001"]
    assert "core_auditentry and core_auditseal" in warning.msg
    assert grants.changes_allowed(role) == []
