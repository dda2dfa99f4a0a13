"""Backs up and restores the running portal's database by its own commands, as the owner of the tables."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
from django.db import connections

from deploy.local.home import APPLICATION_ROLE, REPOSITORY
from deploy.local.stores import postgres_binaries

OWNER_URL = "DATABASE_OWNER_URL"


def dump(folder: Path) -> Path:
    _manage("backup", str(folder), f"--programs={postgres_binaries()}")
    return folder


def restore(folder: Path) -> None:
    """Restore the database, emptied, from the backup; no other client may be connected."""
    connections.close_all()
    with psycopg.connect(os.environ[OWNER_URL], autocommit=True) as owner:
        owner.execute("DROP SCHEMA public CASCADE")
        owner.execute("CREATE SCHEMA public")
    _manage("restore", str(folder), f"--programs={postgres_binaries()}")
    _manage("grant", APPLICATION_ROLE)


def _manage(*arguments: str) -> None:
    env = {**os.environ, "DATABASE_URL": os.environ[OWNER_URL]}
    subprocess.run([sys.executable, "-m", "manage", *arguments], cwd=REPOSITORY, env=env, check=True)
