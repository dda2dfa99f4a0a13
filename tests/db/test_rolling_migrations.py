"""Migrations since the last release leave its processes working: a release only adds, a later one removes.

docs/operate/upgrade.md has the rules. `ALLOWED` has the exceptions, each with the reason why nothing breaks.
"""

import re

import pytest
from django.db import connection
from django.db.migrations import AddField, Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models import BooleanField
from django_migration_linter import MigrationLinter
from django_migration_linter.sql_analyser.analyser import analyse_sql_statements

from tests.support import upgrade

ALLOWED = {
    (
        "catalog.0002_own_presets",
        "ADD_UNIQUE",
    ): "processes of 0.1.0 write no owner, and for them names were unique before",
}
APPLIED = re.compile(r"INTO public\.django_migrations VALUES \(\d+, '(\w+)', '(\w+)'")
OWN = ("portal.", "quotas.", "allocations")


def added() -> list[Migration]:
    """Return the portal's migrations that the last release did not have."""
    released = set(APPLIED.findall(upgrade.RELEASE.read_text(encoding="utf-8")))
    assert released
    found = MigrationLoader(None).disk_migrations
    return [one for key, one in sorted(found.items()) if key not in released and one.__module__.startswith(OWN)]


def breaking(migration: Migration, statements: list[str]) -> list[str]:
    """Return why processes of the release before would fail, as codes of django-migration-linter."""
    linter = MigrationLinter(no_cache=True, no_output=True, analyser_string="postgresql")
    errors, _, _ = analyse_sql_statements(linter.sql_analyser_class, statements)
    data_errors, _, _ = linter.analyse_data_migration(migration)
    codes = [issue.code for issue in (*errors, *(data_errors or ()))]
    return [code for code in codes if (str(migration), code) not in ALLOWED]


def sql(migration: Migration, state: ProjectState) -> list[str]:
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    return [str(line) for line in editor.collected_sql if not str(line).startswith("--")]


@pytest.mark.django_db
@pytest.mark.parametrize("migration", added(), ids=str)
def test_a_new_migration_breaks_no_process_of_the_last_release(migration: Migration) -> None:
    state = MigrationLoader(connection).project_state((migration.app_label, migration.name), at_end=False)
    assert breaking(migration, sql(migration, state)) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "codes"),
    [(BooleanField(default=False), ["NOT_NULL"]), (BooleanField(default=False, db_default=False), [])],
)
def test_a_column_without_a_default_in_the_database_is_found(field: BooleanField, codes: list[str]) -> None:
    migration = type("Later", (Migration,), {"operations": [AddField("heartbeat", "extra", field)]})("later", "core")
    assert breaking(migration, sql(migration, MigrationLoader(connection).project_state())) == codes
