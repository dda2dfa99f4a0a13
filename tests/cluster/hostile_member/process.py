"""The attacker's process as the test controls it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from deploy.local.home import REPOSITORY
from tests.cluster.hostile_member import tally
from tests.cluster.hostile_member.__main__ import BEGUN, Task
from tests.cluster.hostile_member.tally import Tally
from tests.support.cluster.waiting import eventually

BEGINS_WITHIN_S = 60.0
ENDS_WITHIN_S = 120.0


class AttackProcess:
    """A process with a task; ``is_over`` when its time is up."""

    def __init__(self, task: Task, folder: Path) -> None:
        self._task, self._folder = task, folder
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cluster.hostile_member"],
                cwd=REPOSITORY,
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin
        with self._process.stdin as stdin:
            stdin.write(task.text())
        eventually(lambda: self._says(BEGUN) or self._process.poll() is not None, within_s=BEGINS_WITHIN_S)
        assert self._says(BEGUN), (folder / "err").read_text()
        self._until = time.monotonic() + task.seconds

    def is_over(self) -> bool:
        return time.monotonic() >= self._until or self._process.poll() is not None

    def tallies(self) -> dict[str, Tally]:
        """Return its tallies once its last requests were answered; raise AssertionError if it failed."""
        status, errors = self._process.wait(timeout=ENDS_WITHIN_S), (self._folder / "err").read_text()
        assert status == 0 and not errors, f"the attack ended with status {status}: {errors}"
        last = (self._folder / "out").read_text().splitlines()[-1]
        return {name: tally.read(document) for name, document in json.loads(last).items()}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _says(self, line: str) -> bool:
        return line in (self._folder / "out").read_text().splitlines()
