"""What a start says before its first process: what the machine lacks, and stores that are named but do not answer."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

import deploy.local
from deploy.local import build, checks, toolchain
from deploy.local.errors import LocalError
from deploy.local.home import REPOSITORY
from portal.tenants.models import Team

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """Return a connection to a new database, which DATABASE_URL names."""
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute("CREATE DATABASE start_checks TEMPLATE template0")  # template1 is migrated
        url = urlunsplit(urlsplit(server)._replace(path="/start_checks"))
        monkeypatch.setenv("DATABASE_URL", url)
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
        administrator.execute("DROP DATABASE start_checks WITH (FORCE)")


def test_the_checks_of_the_machine_import_no_package() -> None:
    subprocess.run([sys.executable, "-S", "-c", "import deploy.local.checks"], cwd=REPOSITORY, check=True)


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"Python 3\.11 or newer is needed; .* is 3\.9\. Name one: make demo BASE="):
        importlib.reload(deploy.local)


def test_a_redis_that_cannot_be_compiled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "REDIS_WHEELS_BEFORE", (3, 0))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(LocalError, match="no wheel of Redis for this Python, and no compiler"):
        checks.require_redis()


@pytest.mark.parametrize(("is_built", "what"), [(False, "Building the control plane"), (True, "A start")])
def test_too_small_a_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_built: bool, what: str) -> None:
    monkeypatch.setattr(build, "is_built", lambda: is_built)
    monkeypatch.setattr(build, "NEEDED_BYTES", 2**60)
    monkeypatch.setattr(checks, "DATA_BYTES", 2**60)
    with pytest.raises(LocalError, match=f"{what} needs about .* GiB of free disk"):
        checks.require_machine(tmp_path / "home")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode: folder != tmp_path)
    with pytest.raises(LocalError, match=rf"{tmp_path} \(the data\) cannot be written by this user"):
        checks.require_machine(tmp_path / "home")


def test_without_home_the_folder_of_the_user_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert build.cache_root() == toolchain.user_home() / ".cache" / "gpu-portal"
    assert toolchain.environment()["HOME"] == str(toolchain.user_home())


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_OWNER_URL"])
def test_a_database_that_does_not_answer_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, f"postgresql://someone:secret@{NOWHERE}/other")
    with pytest.raises(LocalError) as error:
        checks.require_stores(("portal",))
    assert str(error.value).startswith(f"{name} is set, but PostgreSQL at {NOWHERE}/other does not answer: ")
    assert "secret" not in str(error.value)


def test_a_redis_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis://{NOWHERE}/0")
    with pytest.raises(LocalError, match=f"REDIS_URL is set, but Redis at {NOWHERE}/0 does not answer"):
        checks.require_stores(("portal",))


def test_the_database_of_something_else_is_refused(database: psycopg.Connection) -> None:
    database.execute("CREATE TABLE django_migrations (id int); CREATE TABLE invoices (id int)")
    with pytest.raises(LocalError, match="has tables of something else, such as invoices"):
        checks.require_stores(("portal",))


@pytest.mark.parametrize("tables", [(), ("django_migrations",), ("invoices", Team._meta.db_table)])
def test_a_database_without_tables_or_with_the_portals_is_used(
    database: psycopg.Connection, tables: tuple[str, ...]
) -> None:
    for table in tables:
        database.execute(f"CREATE TABLE {table} (id int)")
    checks.require_stores(("portal",))


def test_the_control_plane_alone_asks_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://{NOWHERE}/other")
    checks.require_stores(("cluster",))


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "DJANGO_SETTINGS_MODULE"])
def test_what_make_starts_does_not_see_a_variable_of_another_project(name: str) -> None:
    command = ["make", "--eval=variables: ; @env", "variables"]
    environment = {**os.environ, name: "other"}
    shown = subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True, text=True)
    assert f"{name}=" not in shown.stdout
