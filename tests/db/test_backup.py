"""A backup restored into an empty database loses nothing; a restore is refused where it would mix or damage."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from allocations.models import Allocation
from deploy.local.stores import postgres_binaries
from portal.operations import backup
from portal.operations.backup import DUMP, MANIFEST
from quotas.metering.models import UsageInterval
from tests.support import upgrade

PROGRAMS = f"--programs={postgres_binaries()}"


@pytest.fixture(scope="module")
def made(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Return a backup of the database of the last release, migrated: held, waiting, ended and lost allocations."""
    folder = tmp_path_factory.mktemp("backup") / "made"
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.RELEASE):
        call_command("backup", folder, PROGRAMS, stdout=StringIO())
        yield folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the backup that a test may damage."""
    for name in (DUMP, MANIFEST):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return tmp_path


def restored(folder: Path) -> str:
    out = StringIO()
    call_command("restore", folder, PROGRAMS, stdout=out)
    return out.getvalue()


def test_restored_into_an_empty_database_nothing_is_lost(made: Path) -> None:
    rows = list(Allocation.objects.order_by("pk").values())
    ledger = list(UsageInterval.objects.order_by("pk").values())
    assert rows
    assert ledger
    with upgrade.empty_database("restored"):
        assert "the ledger's sums are equal" in restored(made)
        assert list(Allocation.objects.order_by("pk").values()) == rows
        assert list(UsageInterval.objects.order_by("pk").values()) == ledger
        call_command("migrate", check_unapplied=True, verbosity=0)


def test_the_manifest_has_the_release_its_migrations_and_the_sums_of_the_ledger(made: Path) -> None:
    manifest = json.loads((made / MANIFEST).read_text())
    assert manifest["rows"]["metering_usageinterval"] == UsageInterval.objects.count()
    assert manifest["sums"]["usage_open"] == str(UsageInterval.objects.filter(end=None).count())
    assert "core.0001_initial" in manifest["migrations"]
    assert oct((made / DUMP).stat().st_mode)[-3:] == "600"


def test_it_is_not_restored_into_a_database_that_has_tables(made: Path) -> None:
    with pytest.raises(CommandError, match="not empty"):
        restored(made)


def test_a_backup_of_another_release_is_refused(copied: Path) -> None:
    manifest = json.loads((copied / MANIFEST).read_text())
    manifest["migrations"].append("core.9999_later")
    (copied / MANIFEST).write_text(json.dumps(manifest))
    with upgrade.empty_database("restored"), pytest.raises(CommandError, match=r"core\.9999_later.*then upgrade"):
        restored(copied)


def test_a_damaged_dump_is_refused(copied: Path) -> None:
    with (copied / DUMP).open("ab") as file:
        file.write(b"x")
    with upgrade.empty_database("restored"), pytest.raises(CommandError, match="is damaged"):
        restored(copied)


def test_a_restore_that_lacks_rows_is_told(copied: Path) -> None:
    manifest = json.loads((copied / MANIFEST).read_text())
    manifest["rows"]["metering_usageinterval"] += 1
    (copied / MANIFEST).write_text(json.dumps(manifest))
    with upgrade.empty_database("restored"), pytest.raises(CommandError, match="metering_usageinterval is"):
        restored(copied)


def test_rows_that_are_written_meanwhile_are_in_neither_dump_nor_manifest(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is written between the snapshot and the dump."""
    run = backup._run

    def write_first(*arguments: Any) -> None:
        with psycopg.connect(backup._address(), autocommit=True) as session:
            session.execute("INSERT INTO core_heartbeat (name, at) VALUES ('late', now())")
        run(*arguments)

    monkeypatch.setattr(backup, "_run", write_first)
    call_command("backup", tmp_path / "new", PROGRAMS, stdout=StringIO())
    monkeypatch.undo()
    with upgrade.empty_database("restored"):
        restored(tmp_path / "new")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM core_heartbeat WHERE name = 'late'")
            assert cursor.fetchone() == (0,)


def test_without_postgresqls_programs_it_says_what_to_do(tmp_path: Path, made: Path) -> None:
    with pytest.raises(CommandError, match="pg_dump is not on PATH"):
        call_command("backup", tmp_path / "new", f"--programs={tmp_path}")
