"""Backs up the portal's database into a folder, and restores it into an empty database.

The folder has a dump in PostgreSQL's custom format and a manifest: release, migrations, rows of each table, sums of the
ledger, head of the audit log, checksum of the dump. Dump and manifest are of one snapshot. A restore counts again.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg.conninfo import make_conninfo

from portal.core import clock

FORMAT = 1
DUMP, MANIFEST = "portal.dump", "manifest.json"
LIBPQ = ("dbname", "host", "port", "user", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
SUMS = {
    "usage_gpu_seconds": """
        SELECT coalesce(sum(round(count::numeric * gpu_share_numerator / gpu_share_denominator, 12)
            * extract(epoch FROM "end" - start)), 0) FROM metering_usageinterval
    """,
    "usage_open": 'SELECT count(*) FROM metering_usageinterval WHERE "end" IS NULL',
    "capacity_unit_seconds": """
        SELECT coalesce(sum(count * extract(epoch FROM "end" - start)), 0) FROM metering_capacityinterval
    """,
    "audit_head": "SELECT coalesce((SELECT digest FROM core_auditseal ORDER BY position DESC LIMIT 1), '')",
}
"""What must be equal after a restore, beside the number of rows of each table."""


class BackupError(Exception):
    """Why a backup or restore was refused or failed, and what would work."""


def backup(folder: Path, programs: Path | None = None) -> dict[str, Any]:
    """Write dump and manifest into a new or empty folder; return the manifest.

    ``programs`` is the folder of PostgreSQL's programs; without it they are found on PATH. Raises BackupError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty. Name a new folder.")
    with closing(_connect()) as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        snapshot = _value(session, "SELECT pg_export_snapshot()")
        dump = folder / DUMP
        _run(programs, "pg_dump", "--format=custom", "--no-comments", f"--snapshot={snapshot}", f"--file={dump}")
        dump.chmod(0o600)
        manifest = {
            "format": FORMAT,
            "taken_at": clock.now().isoformat(),
            "release": version("gpu-portal"),
            "postgresql": _value(session, "SHOW server_version"),
            "migrations": sorted(".".join(row) for row in session.execute("SELECT app, name FROM django_migrations")),
            **_contents(session),
            "dump": {"file": DUMP, "bytes": dump.stat().st_size, "sha256": _sha256(dump)},
        }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def restore(folder: Path, programs: Path | None = None) -> dict[str, Any]:
    """Restore a backup of this release into the empty database; return its manifest.

    All or nothing: tables belong to the connected role, and rights on them are still to be granted. Raises BackupError.
    """
    manifest = _manifest(folder)
    with closing(_connect()) as session:
        if tables := [str(row[0]) for row in session.execute(TABLES)]:
            raise BackupError(
                f"The database is not empty: it has {len(tables)} tables. Create another one for DATABASE_URL."
            )
    _run(programs, "pg_restore", "--no-owner", "--no-privileges", "--single-transaction", str(folder / DUMP))
    with closing(_connect()) as session:
        found = _contents(session)
    wrong = _differences({**manifest["rows"], **manifest["sums"]}, {**found["rows"], **found["sums"]})
    if wrong:
        raise BackupError(f"The restored database differs from the manifest: {'; '.join(wrong)}. Do not use it.")
    return manifest


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest, if the backup is whole and this release can run it."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        is_whole = _sha256(folder / DUMP) == manifest["dump"]["sha256"]
    except (OSError, ValueError, KeyError) as error:
        raise BackupError(f"{folder} has no backup that can be read: {error}") from error
    if manifest["format"] != FORMAT:
        raise BackupError(f"The backup has format {manifest['format']}, this release reads {FORMAT}.")
    if not is_whole:
        raise BackupError(f"{folder / DUMP} is damaged: its checksum is not that of the manifest. Use another backup.")
    own = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if other := sorted(own ^ set(manifest["migrations"])):
        raise BackupError(
            f"The backup is of another release ({manifest['release']}): {len(other)} migrations differ, such as "
            f"{other[0]}. Restore it with the release that wrote it, then upgrade."
        )
    return manifest


def _contents(session: psycopg.Connection[Any]) -> dict[str, Mapping[str, Any]]:
    tables = [str(row[0]) for row in session.execute(TABLES)]
    rows = {table: _value(session, f'SELECT count(*) FROM "{table}"') for table in tables}  # noqa: S608 (a catalog's name)
    return {"rows": rows, "sums": {name: str(_value(session, sql)) for name, sql in SUMS.items()}}


def _differences(expected: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [f"{n} is {found.get(n)}, not {expected.get(n)}" for n in names if expected.get(n) != found.get(n)]


def _connect() -> psycopg.Connection[Any]:
    return psycopg.connect(_address(), password=connection.settings_dict["PASSWORD"] or None, autocommit=True)


def _address() -> str:
    """Return how libpq reaches Django's database, without the password, which would show in `ps`."""
    parameters = connection.get_connection_params()
    return make_conninfo("", **{name: parameters[name] for name in LIBPQ if parameters.get(name)})


def _run(programs: Path | None, program: str, *arguments: str) -> None:
    path = shutil.which(program, path=str(programs) if programs else None)
    if path is None:
        raise BackupError(f"{program} is not on PATH. Install PostgreSQL's client programs, or name their folder.")
    password = connection.settings_dict["PASSWORD"]
    env = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    command = [path, f"--dbname={_address()}", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupError(f"{program} failed: {' '.join(done.stderr.split())[-1000:]}")


def _value(session: psycopg.Connection[Any], sql: str) -> Any:
    row = session.execute(sql.encode()).fetchone()
    return row[0] if row else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
