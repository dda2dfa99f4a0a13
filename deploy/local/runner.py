"""The local cluster as an object, for the commands, the demo and the fault tests.

local = Local(Path(".local"))
local.up(("cluster",))
local.kill("kueue"); local.wait_ready("kueue")
local.down()
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from deploy.local import checks, control, failed_start, leftovers
from deploy.local.build import build
from deploy.local.control import NotRunning
from deploy.local.errors import LocalError
from deploy.local.failed_start import UP, tail
from deploy.local.home import REPOSITORY, Home, open_home
from deploy.local.processes import GROUPS
from deploy.local.serve import is_running

DOWN_TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.2


def silent(_: str) -> None:
    """Discard progress messages."""


class Local:
    """A home and its supervisor, which runs in a process of its own."""

    def __init__(self, home: Path, say: Callable[[str], None] = silent) -> None:
        self.root = home.resolve()
        self.say = say

    @cached_property
    def binaries(self) -> Path:
        return build(self.say)

    @property
    def _log(self) -> Path:
        return self.root / "logs" / "supervisor.log"

    @property
    def home(self) -> Home:
        """Return the home; read each time, since a start may choose other ports."""
        return open_home(self.root, self.binaries)

    @property
    def kubeconfig(self) -> Path:
        return self.home.kubeconfig

    @property
    def portal_kubeconfig(self) -> Path:
        return self.home.portal_kubeconfig

    def env(self) -> dict[str, str]:
        """Return the environment of a portal process, to merge over os.environ."""
        return self.home.env()

    def up(self, groups: Iterable[str] = GROUPS, timeout_s: float = failed_start.WITHIN_S) -> None:
        """Start `groups` unless they run, and return when every row is ready.

        If a row does not become ready, or the caller is interrupted, stop what this call started; raise LocalError with
        the row, the end of its log, and what usually causes it.
        """
        requested = tuple(groups)
        checks.require_machine(self.root)
        ran_before = self.is_up()
        if not ran_before:
            checks.require_stores(requested)
        self.binaries  # noqa: B018 - built here, where the progress is visible
        try:
            self._ensure_supervisor(requested)
            names = control.ask(self.root, "add", groups=requested)
            self._await(lambda row: row["name"] in names and row["phase"] != "stopped", timeout_s)
        except (LocalError, KeyboardInterrupt):
            if not ran_before:
                self.down()
            raise

    def down(self) -> None:
        """Stop everything of this home in order; return when no process of it is left."""
        deadline = time.monotonic() + DOWN_TIMEOUT_S
        while is_running(self.root):
            if time.monotonic() > deadline:
                raise LocalError(f"the cluster in {self.root} did not stop; {tail(self._log)}")
            with contextlib.suppress(NotRunning):  # it does not listen yet, or not any more
                control.ask(self.root, "down")
            time.sleep(LOOK_EVERY_S)
        leftovers.end(self.root)

    def is_up(self) -> bool:
        return is_running(self.root)

    def status(self) -> list[dict[str, Any]]:
        """Return a dict per row: name, phase, pid, starts, log. Raises NotRunning."""
        rows: list[dict[str, Any]] = control.ask(self.root, "status")
        return rows

    def pids(self) -> dict[str, int]:
        """Return the pids of running rows by name; steps and stopped rows have none."""
        return {row["name"]: row["pid"] for row in self.status() if row["pid"]}

    def kill(self, name: str) -> None:
        """Send SIGKILL to the row's process group; the supervisor restarts it."""
        control.ask(self.root, "kill", name=name)

    def stop(self, name: str) -> None:
        """Stop the row by its stop signal and keep it down until `start`."""
        control.ask(self.root, "stop", name=name)

    def hold(self, name: str) -> None:
        """Send SIGKILL and keep the row down until `start`: an outage."""
        control.ask(self.root, "hold", name=name)

    def start(self, name: str) -> None:
        control.ask(self.root, "start", name=name)

    def wait_ready(self, name: str, timeout_s: float = 180.0) -> None:
        self._await(lambda row: row["name"] == name, timeout_s)

    def _spawn(self, groups: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "deploy.local", "supervise", f"--home={self.root}"]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            subprocess.run(
                [*command, f"--groups={','.join(groups)}"],
                cwd=REPOSITORY,
                env={key: value for key, value in os.environ.items() if key != leftovers.MARK},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=True,
            )

    def _ensure_supervisor(self, groups: tuple[str, ...], timeout_s: float = 120.0) -> None:
        """Return when a supervisor responds; start it if none does.

        A killed supervisor may hold its lock for a moment longer, so both are checked each time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                control.ask(self.root, "status")
            except NotRunning as error:
                if time.monotonic() > deadline:
                    raise LocalError(f"the supervisor does not answer; {tail(self._log)}") from error
                if not is_running(self.root):
                    self._spawn(groups)
                time.sleep(LOOK_EVERY_S)
            else:
                return

    def _await(self, concerns: Callable[[dict[str, Any]], bool], timeout_s: float) -> None:
        """Wait until every row that `concerns` selects is ready; raise LocalError on timeout or if one keeps
        failing.
        """
        deadline = time.monotonic() + timeout_s
        reported: set[str] = set()
        starts: dict[str, int] = {}
        while True:
            rows = [row for row in self.status() if concerns(row)]
            for row in rows:
                starts.setdefault(row["name"], row["starts"])
                if row["phase"] in UP and row["name"] not in reported:
                    reported.add(row["name"])
                    self.say(f"  {row['name']} {row['phase']}")
            if all(row["phase"] in UP for row in rows):
                return
            failed_start.raise_if_failed(rows, starts, self.binaries, is_late=time.monotonic() > deadline)
            time.sleep(LOOK_EVERY_S)
