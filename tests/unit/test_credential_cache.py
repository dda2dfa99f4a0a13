"""Kubernetes tokens kept by `gpu-portal credential`: for their owner alone, until 80 % of their life."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.cli import credential_cache
from portal.cli.config import Config

PORTAL = Config("https://portal.example.org", "gpup_one")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def given(lives: timedelta) -> dict[str, Any]:
    return {"cluster": "a", "token": "t", "expires_at": (datetime.now(UTC) + lives).isoformat()}


def used_for(path: Path, lives: timedelta) -> timedelta:
    credential_cache.save(path, given(lives))
    text = path.read_text(encoding="utf-8")
    return datetime.fromisoformat(text.split('"used_until": "')[1].split('"')[0]) - datetime.now(UTC)


def test_a_token_is_kept_readable_by_its_owner_alone() -> None:
    file = credential_cache.file(PORTAL, "a")
    credential_cache.save(file, given(timedelta(hours=1)))
    kept = credential_cache.load(file)
    assert kept
    assert kept["token"] == "t"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o077 == 0


def test_a_token_is_used_until_80_percent_of_its_life() -> None:
    file = credential_cache.file(PORTAL, "a")
    assert abs(used_for(file, timedelta(minutes=50)) - timedelta(minutes=40)) < timedelta(seconds=30)
    credential_cache.save(file, given(timedelta(0)))
    assert credential_cache.load(file) is None


def test_a_second_person_and_a_second_cluster_have_their_own() -> None:
    files = {
        credential_cache.file(portal, cluster)
        for portal in (PORTAL, Config(PORTAL.url, "gpup_two"), Config("https://other.example.org", PORTAL.token))
        for cluster in ("a", "b")
    }
    assert len(files) == 6


def test_what_cannot_be_read_or_written_is_asked_for_again(cache: Path) -> None:
    file = credential_cache.file(PORTAL, "a")
    assert credential_cache.load(file) is None
    (cache / "gpu-portal").write_text("no folder", encoding="utf-8")
    credential_cache.save(file, given(timedelta(hours=1)))
    assert credential_cache.load(file) is None
