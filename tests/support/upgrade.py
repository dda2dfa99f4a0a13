"""Databases of releases, which a test upgrades; ``tests.upgrade`` writes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

RELEASE = Path(__file__).parents[1] / "upgrade" / "0.1.0.sql"
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
"""When its rows were written."""


def token() -> str:
    """Return the text of a person's token in the dump."""
    return RELEASE.read_text(encoding="utf-8").partition("\n")[0].removeprefix("-- ")


@contextmanager
def upgraded(dump: Path) -> Iterator[None]:
    """Load a dump into a database of its own, migrate it, and let Django use it for the block."""
    with empty_database("upgraded"):
        with psycopg.connect(_address(connection.settings_dict["NAME"])) as database:
            database.execute(dump.read_bytes())
        call_command("migrate", verbosity=0)
        yield


@contextmanager
def empty_database(suffix: str) -> Iterator[None]:
    """Let Django use an empty database of its own for the block."""
    settings = connection.settings_dict
    usual = settings["NAME"]
    name = f"{usual}_{suffix}"
    connection.close()
    drop = SQL("DROP DATABASE IF EXISTS {}").format(Identifier(name))
    with psycopg.connect(_address(usual), autocommit=True) as server:
        server.execute(drop)
        server.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(name)))
        settings["NAME"] = name
        try:
            yield
        finally:
            connection.close()
            settings["NAME"] = usual
            server.execute(drop)


def _address(database: str) -> str:
    values = connection.settings_dict
    found = {"host": values["HOST"], "port": values["PORT"], "user": values["USER"], "password": values["PASSWORD"]}
    return make_conninfo("", dbname=database, **{name: value for name, value in found.items() if value})
