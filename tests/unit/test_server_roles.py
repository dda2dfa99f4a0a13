"""The entry point of the image: which roles there are, and when a probe finds one alive."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.server.__main__ import SILENT_S


def server(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "portal.server", *arguments]
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=False)


def test_an_unknown_role_is_refused_with_those_that_there_are() -> None:
    refused = server("webs")
    assert refused.returncode == 2
    assert all(role in refused.stderr for role in ("web", "worker", "beat", "watch", "migrate", "wait", "alive"))


@pytest.mark.parametrize(
    ("age_s", "said"), [(None, "has not worked yet\n"), (0, ""), (SILENT_S + 60, "silent for")], ids=str
)
def test_a_role_is_alive_while_it_touches_its_file(tmp_path: Path, age_s: float | None, said: str) -> None:
    file = tmp_path / "alive"
    if age_s is not None:
        file.touch()
        os.utime(file, (time.time() - age_s,) * 2)
    probe = server("alive", ALIVE_FILE=str(file))
    assert probe.returncode == (0 if age_s == 0 else 1)
    assert probe.stderr.startswith(said)


def test_options_reach_the_process_that_replaces_it() -> None:
    version = server("worker", "--version-of-nothing")
    assert version.returncode == 2
    assert "--version-of-nothing" in version.stderr
