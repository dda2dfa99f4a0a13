"""Dumps and restores the portal's database with its grants, by PostgreSQL's own programs, as its owner."""

import os
import subprocess
from pathlib import Path

from django.db import connections
from psycopg.conninfo import conninfo_to_dict

from deploy.local.stores import postgres_binaries


def dump(path: Path) -> Path:
    _run("pg_dump", "--format=custom", f"--file={path}")
    return path


def restore(path: Path) -> None:
    """Restore the database from the dump; no other client may be connected."""
    connections.close_all()
    _run("psql", "--quiet", "--command=DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    _run("pg_restore", "--no-owner", "--single-transaction", f"--dbname={_place()['dbname']}", str(path))


def _run(program: str, *arguments: str) -> None:
    place = _place()
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    env = {**os.environ, **{variable: place[key] for key, variable in names.items() if key in place}}
    subprocess.run([str(postgres_binaries() / program), *arguments], env=env, check=True, capture_output=True)


def _place() -> dict[str, str]:
    return {key: str(value) for key, value in conninfo_to_dict(os.environ["DATABASE_OWNER_URL"]).items()}
