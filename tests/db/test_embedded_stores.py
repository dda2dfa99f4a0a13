"""The embedded PostgreSQL below a folder that only the person who starts it may enter, such as root's home."""

import os
import shutil
from pathlib import Path

import psycopg
import pytest

from deploy.local import stores
from tests import services


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of mode 0700 that has the programs."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    package = stores.postgres_binaries().parents[1]
    for part in (package, package.with_suffix(".libs")):
        shutil.copytree(part, folder / part.name)
    binaries = folder / package.name / "pginstall18" / "bin"
    monkeypatch.setattr(stores, "postgres_binaries", lambda: binaries)
    return folder


def test_postgres_runs_where_only_root_may_enter(private: Path) -> None:
    folder = private / "stores"
    folder.mkdir()
    with services.postgres(folder) as url, psycopg.connect(url) as connection:
        assert connection.execute("SHOW data_directory").fetchone() == (str(folder / "data"),)
        owner = Path(f"/proc/{connection.info.backend_pid}").stat().st_uid
    assert owner == (stores.NOBODY if os.geteuid() == 0 else os.geteuid())
    assert private.stat().st_mode & 0o777 == 0o700
