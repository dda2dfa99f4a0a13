"""The application's database role reads append-only tables and adds to them; PostgreSQL refuses it anything else, but
to update the columns that get their value later.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from fractions import Fraction
from uuid import uuid4

import psycopg
import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection
from psycopg import errors, sql

from portal.audit import chain, grants
from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Refused
from portal.core.models import AuditEntry, Heartbeat
from portal.tenants import services as tenants
from portal.tenants import structure
from portal.tenants.actors import SYSTEM, System
from portal.tenants.models import Team, User
from quotas.catalog.models import Flavor, Node, Pool
from quotas.costs import bills, capacity_services, rollups, withdrawals
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import NodeCost, Price
from quotas.costs.node_terms import Term
from quotas.costs.services import set_price
from quotas.limits import services as limits
from quotas.metering import capacity, foreign
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
from quotas.metering.models import (
    AccountHour,
    BalanceProof,
    CapacityInterval,
    ClockSkew,
    DayTotal,
    DirtyHour,
    ForeignUse,
    HourTotal,
    MonthTotal,
    OwnedIdleDay,
    OwnedIdleHour,
    OwnedIdleMonth,
    RolledUpHour,
    UsageInterval,
)
from quotas.metering.units import FoundUnit, Unit, Value
from tests.support.clusters import LOCAL
from tests.support.people import person
from tests.support.quotas import attribution, cluster, hour, used

pytestmark = pytest.mark.django_db(transaction=True)
ROLE, PASSWORD = "portal_under_test", "only-for-tests"
UPDATABLE = {
    "core_auditentry": set(),
    "core_auditseal": set(),
    "costs_price": set(),
    "costs_bill": set(),
    "costs_sharedcost": set(),
    "costs_nodecost": set(),
    "costs_nodeterm": set(),
    "costs_nodeinterval": {"end", "source_end", "estimated_end"},
    "catalog_flavorversion": set(),
    "limits_quotachange": set(),
    "limits_weightchange": set(),
    "tenants_hierarchychange": set(),
    "metering_usageinterval": {"end", "source_end", "estimated_end"},
    "metering_capacityinterval": {
        *("end", "source_end", "estimated_end"),
        *("flavor", "gpus_numerator", "gpus_denominator", "offered"),
    },
    "metering_foreignuse": {"end", "revision_end", "estimated_end"},
    "metering_holduse": {"end", "revision_end", "estimated_end"},
    "metering_correction": set(),
    "metering_recorderoutage": set(),
}
"""The columns of each append-only table that the application's role may update."""
WITHDRAWABLE = {"costs_price", "costs_nodecost", "costs_nodeterm", "costs_sharedcost", "tenants_hierarchychange"}
"""The tables of which it may delete rows by which nothing was computed yet."""
TEST = {"kind": "test"}


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


@pytest.fixture
def operator() -> User:
    return person(platform_role="operator")


@contextmanager
def connected() -> Iterator[psycopg.Connection]:
    """Connect to the same database as the role."""
    place = connection.get_connection_params()
    words = {name: place[name] for name in ("host", "port", "dbname") if place.get(name)}
    with psycopg.connect(**words, user=ROLE, password=PASSWORD, autocommit=True) as own:
        yield own


@contextmanager
def as_role() -> Iterator[None]:
    """Run the statements of the portal's own code with the rights of the role."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {ROLE}")
        try:
            yield
        finally:
            cursor.execute("RESET ROLE")


def execute(own: psycopg.Connection, statement: str, table: str, column: str = "") -> None:
    own.execute(sql.SQL(statement).format(table=sql.Identifier(table), column=sql.Identifier(column or "id")))


def test_every_table_of_the_ledger_is_append_only():
    """Proofs and roll-ups are no part of it: they are computed from it, and anew when it changes. Nor are clocks."""
    rolled_up = {AccountHour, HourTotal, DayTotal, MonthTotal, RolledUpHour, DirtyHour}
    rolled_up |= {OwnedIdleHour, OwnedIdleDay, OwnedIdleMonth}
    ledger = set(apps.get_app_config("metering").get_models()) - rolled_up - {BalanceProof, ClockSkew}
    assert {model._meta.db_table for model in ledger | {Price}} <= UPDATABLE.keys()


def test_the_role_may_update_what_the_models_declare():
    assert {table: set(columns) for table, columns in grants.append_only().items()} == UPDATABLE
    assert set(grants.withdrawable()) == WITHDRAWABLE


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        (table, statement)
        for statement in ("DELETE FROM {table}", "TRUNCATE {table} CASCADE", "DROP TABLE {table}")
        for table in UPDATABLE
        if table not in WITHDRAWABLE or "DELETE" not in statement
    ],
)
def test_postgresql_refuses_to_remove_rows(role, table, statement):
    with connected() as own, pytest.raises(errors.InsufficientPrivilege):
        execute(own, statement, table)
    assert AuditEntry.objects.filter(target="x", seal__position=1).exists()


@pytest.mark.parametrize("table", UPDATABLE)
def test_postgresql_refuses_to_update_all_columns_but_those_that_get_their_value_later(role, table):
    with connection.cursor() as cursor:
        columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
    updated = set()
    with connected() as own:
        for column in columns:
            with suppress(errors.InsufficientPrivilege):
                execute(own, "UPDATE {table} SET {column} = {column}", table, column)
                updated.add(column)
    assert updated == UPDATABLE[table]


def test_the_role_records_usage_and_its_end(role):
    with as_role():
        row = metering.open_interval(uuid4(), uuid4(), "local/a", hour(0), attribution(), 1, TEST)
        metering.close_interval(row.key, hour(1), TEST, estimated=True)
    assert UsageInterval.objects.get(end=hour(1), estimated_end=True).source_end == TEST


def test_the_role_rolls_hours_up_and_does_so_again(role):
    used(hour(0), hour(1))
    with as_role():
        rollups.roll_up(LOCAL, hour(0), hour(24))
        metering.open_interval(uuid4(), uuid4(), "local/a", hour(0.5), attribution(), 1, TEST)
        rollups.roll_up(LOCAL, hour(0), hour(1))
    assert sum(DayTotal.objects.values_list("amount", flat=True)) == 5_400_000_000


def test_the_role_records_capacity_its_value_and_its_end(role):
    unit = Unit("l40s-0", "resource", "nvidia.com/gpu")
    value = Value("l40s", Fraction(1), offered=True)
    found = {unit: FoundUnit(4, 4)}
    with as_role():
        capacity.record(LOCAL, {"l40s-0": TEST}, lambda _: found, hour(0))
        capacity.add_values(LOCAL, capacity.open_units(LOCAL), {unit: value})
        capacity.record(LOCAL, {"l40s-0": TEST}, lambda _: {}, hour(1), estimated=True)
    row = CapacityInterval.objects.get(end=hour(1), estimated_end=True)
    assert (row.value, row.source_end) == (value, TEST)


def test_the_role_records_foreign_use_and_its_end(role):
    use = Use("local/pod:a/nvidia.com/gpu", "l40s-0", "resource", "nvidia.com/gpu", 2, "Pod", "a", "a", "elsewhere")
    with as_role():
        foreign.begin(LOCAL, [Start(use, hour(0), 1, estimated=False)] * 2)
        foreign.end(LOCAL, "a", [use.slot], hour(1), 2, estimated=True)
    assert ForeignUse.objects.get(end=hour(1), estimated_end=True).revision_end == 2


def test_the_role_sets_prices(role):
    cluster()
    flavor = Flavor.objects.get(name="l40s")
    with as_role():
        for amount, begins in (("3", hour(0)), ("4", clock.now() + timedelta(days=1))):
            set_price(SYSTEM, flavor.name, amount, "EUR", begins)
    assert Price.objects.count() == 2


def test_postgresql_refuses_to_delete_prices_and_costs_that_have_begun_and_lets_others_be_withdrawn(role, operator):
    cluster()
    flavor, node = Flavor.objects.get(name="l40s"), Node.objects.get(name="l40s-0")
    subject, per_gpu = CostSubject(node=node), NodeCost.Per.GPU
    for begins, term in ((clock.now(), Term.SPOT), (clock.now() + timedelta(days=40), Term.RESERVED)):
        set_price(SYSTEM, flavor.name, "3", "EUR", begins)
        capacity_services.set_node_term(SYSTEM, node.cluster_id, node.name, term, begins)
        capacity_services.set_node_cost(SYSTEM, subject, "2", per_gpu, valid_from=begins)
        bills.set_shared_cost(operator, "network", begins.date().replace(day=1), "100", "weighted")
    for kind in withdrawals.KINDS.values():
        begun, scheduled = sorted(kind.model._default_manager.all(), key=withdrawals.begins)
        table = kind.model._meta.db_table
        with connected() as own:
            with pytest.raises(errors.InsufficientPrivilege):
                own.execute(f"DELETE FROM {table}")
            own.execute(f"DELETE FROM {table} WHERE id = {scheduled.pk}")
        assert list(kind.model._default_manager.all()) == [begun]


def test_the_role_deletes_a_team_that_never_had_a_project_or_a_quota_and_the_history_of_no_other(role, project):
    mistake = tenants.create_team(SYSTEM, project.team.department, "mistake", "Oops")
    kept = tenants.create_team(SYSTEM, project.team.department, "kept", "Kept")
    cluster()
    limits.set_limit(SYSTEM, kept, Pool.objects.get(key="l40s/gpu"), 1)
    with as_role():
        structure.delete_team(System("operator"), mistake)
        for team in (project.team, kept):
            with pytest.raises(Refused, match="refer to"):
                structure.delete_team(System("operator"), team)
    assert not Team.objects.filter(slug="mistake").exists()
    for team in (project.team, kept):
        with connected() as own, pytest.raises(errors.InsufficientPrivilege):
            own.execute(f"DELETE FROM tenants_hierarchychange WHERE team_id = {team.pk}")
    with connected() as own, pytest.raises(errors.InsufficientPrivilege):
        own.execute("DELETE FROM tenants_hierarchychange WHERE department_id IS NOT NULL")


def test_a_right_to_more_columns_is_found_and_taken_back_by_the_next_grant(role):
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT UPDATE (start, count), DELETE ON metering_usageinterval TO {role}")
        cursor.execute(f"GRANT UPDATE (per_gpu_hour) ON costs_price TO {role}")
    assert grants.changes_allowed(role) == ["costs_price", "metering_usageinterval"]
    grants.grant(role)
    assert grants.changes_allowed(role) == []


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
    tables = ", ".join(sorted(UPDATABLE))
    with pytest.raises(ImproperlyConfigured, match=f"{owner} may still change or delete rows of {tables}: it owns"):
        grants.grant(owner)


def test_who_owns_no_table_grants_nothing_and_is_told_whose_work_it_is(role):
    with as_role(), pytest.raises(ImproperlyConfigured, match="Use the DATABASE_URL of the role that migrates"):
        grants.grant(role)


def test_a_name_that_is_none_is_refused_before_it_reaches_the_database(role):
    with pytest.raises(ImproperlyConfigured, match="is no name of a role"):
        grants.grant('x"; DROP TABLE core_auditentry; --')


def test_check_warns_of_a_role_that_may_change_log_and_ledger_and_is_silent_of_one_that_may_not(role):
    (warning,) = [found for found in run_checks(databases=["default"]) if found.id == "core.W001"]
    assert f"may change or delete rows of {', '.join(sorted(UPDATABLE))}, which are append-only" in warning.msg
    assert grants.changes_allowed(role) == []
