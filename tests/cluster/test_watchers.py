"""Two watchers, as in a rolling update: one writes, the other is on standby until the first is gone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocations.models import WatchEpoch
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import ended, held, intervals
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Path]:
    """Run a second watcher; yield its log."""
    log = tmp_path / "watcher.log"
    before = _epoch()
    with log.open("w") as out:
        command = [sys.executable, "manage.py", "watch"]
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, "LOG_LEVEL": "INFO"}, stdout=out, stderr=out
        )
    yield log
    process.terminate()
    process.wait(timeout=30)
    eventually(lambda: _epoch() == before + 2)


def _epoch() -> int:
    return WatchEpoch.objects.get().number


def test_a_second_watcher_stands_by_and_takes_over(second: Path, local: Local, project: Project, member: User) -> None:
    eventually(lambda: "watch.standby" in second.read_text())
    epoch = _epoch()
    first = held(member, project, "l40s/whole")
    assert _epoch() == epoch
    local.kill("watcher")
    eventually(lambda: _epoch() == epoch + 1)
    eventually(lambda: "watch ready" in second.read_text())
    row = held(member, project, "h100/whole")
    ended(member, first)
    for one in (first, row):
        assert len(intervals(one)) == 1
    assert [interval.end is None for one in (first, row) for interval in intervals(one)] == [False, True]
