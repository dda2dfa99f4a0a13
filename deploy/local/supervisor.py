"""The loop over the process table: starts rows that are due, restarts those that exit, stops all in order.

One thread takes a step every `STEP_EVERY_S`, and at once after a request on the control socket. State per row:
`waiting` (for rows it needs) → `starting` → `ready` (`done` for a step) → after an exit `backing off` →
`waiting` again; `stopped` until started by command.
"""

import contextlib
import ctypes
import datetime
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deploy.local import leftovers
from deploy.local.errors import LocalError
from deploy.local.home import Home
from deploy.local.probes import START_MARK
from deploy.local.processes import Row

FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.2, 10.0
STEADY_S = 30.0  # ready for this long: the next exit starts with the first back-off again
STEP_EVERY_S = 0.2
PR_SET_PDEATHSIG = 1


@dataclass
class Run:
    """The state of one row while the supervisor lives."""

    row: Row
    phase: str = "waiting"
    process: subprocess.Popen[bytes] | None = None
    due: float = 0.0  # next start or probe, or when a stopping process is killed: monotonic seconds
    since: float = 0.0
    failures: int = 0  # consecutive exits without a steady phase
    starts: int = 0
    exit: int | None = None  # the last code, negative for a signal

    def is_up(self) -> bool:
        return self.phase in ("ready", "done")


class Supervisor:
    """Owns the child processes of one home. `say` receives each change of phase."""

    def __init__(self, home: Home, rows: Iterable[Row], say: Callable[[str], None]) -> None:
        self.home = home
        self.runs = {row.name: Run(row) for row in rows}
        self.say = say

    def step(self) -> None:
        """Start, probe and kill what is due now."""
        now = time.monotonic()
        for run in self.runs.values():
            if run.process is not None and run.process.poll() is not None:
                self._exited(run, now)
            if run.process is None and self._may_start(run, now):
                self._start(run, now)
            elif run.phase == "starting" and run.row.ready and now >= run.due:
                self._probe(run)
            elif run.phase == "stopped" and run.process is not None and now >= run.due:
                _kill_group(run.process)

    def is_up(self) -> bool:
        """Return whether every row is ready and every step done."""
        return all(run.is_up() for run in self.runs.values())

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows; rows that exist already stay as they are."""
        for row in rows:
            self.runs.setdefault(row.name, Run(row))

    def start(self, name: str) -> None:
        """Start a stopped row and reset its back-off; a running one is left alone."""
        run = self._named(name)
        if run.process is None or run.phase == "stopped":
            self._end_now(run)
            run.phase, run.due, run.failures = "waiting", 0.0, 0

    def stop(self, name: str) -> None:
        """Stop the row by its stop signal and keep it down until `start`."""
        run = self._named(name)
        run.phase = "stopped"
        if run.process is not None:
            run.process.send_signal(run.row.stop_signal)
            run.due = time.monotonic() + run.row.stop_within_s

    def hold(self, name: str) -> None:
        """Send SIGKILL to the row's process group; keep it down until `start`."""
        run = self._named(name)
        run.phase = "stopped"
        self._end_now(run)

    def kill(self, name: str) -> None:
        """Send SIGKILL to the row's process group; it is restarted as after any other exit."""
        run = self._named(name)
        if run.process is not None:
            self._end_now(run)
            self._back_off(run, time.monotonic())

    def stop_all(self) -> None:
        """Stop rows by ascending `stop`, equal ones together; return when nothing runs."""
        for rank in sorted({run.row.stop for run in self.runs.values()}):
            runs = [run for run in self.runs.values() if run.row.stop == rank]
            for run in runs:
                self.stop(run.row.name)
            for run in runs:
                self._wait_end(run)
                self.say(f"{run.row.name} stopped")

    def status(self) -> list[dict[str, object]]:
        return [
            {
                "name": run.row.name,
                "phase": run.phase,
                "pid": run.process.pid if run.process else None,
                "starts": run.starts,
                "exit": run.exit,
                "log": str(self.home.log(run.row.name)),
            }
            for run in self.runs.values()
        ]

    def _named(self, name: str) -> Run:
        if name not in self.runs:
            raise LocalError(f"no process named {name}; there are {', '.join(self.runs)}")
        return self.runs[name]

    def _may_start(self, run: Run, now: float) -> bool:
        if run.phase not in ("waiting", "backing off") or now < run.due:
            return False
        return all(self._serves(need) for need in run.row.needs if need in self.runs)

    def _serves(self, name: str) -> bool:
        """Return whether the row and all rows it needs are up: a finished step does not show whether its server is up
        now.
        """
        run = self.runs[name]
        return run.is_up() and all(self._serves(need) for need in run.row.needs if need in self.runs)

    def _start(self, run: Run, now: float) -> None:
        row = run.row
        row.cwd.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        with self.home.log(row.name).open("ab") as log:
            log.write(f"{START_MARK}{datetime.datetime.now(datetime.UTC).isoformat()}\n".encode())
            log.flush()
            run.process = subprocess.Popen(
                row.command,
                cwd=row.cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **row.env, **leftovers.mark(self.home.root)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),
            )
        run.phase, run.since, run.due = "starting", now, now + STEP_EVERY_S / 2
        run.starts += 1

    def _probe(self, run: Run) -> None:
        assert run.row.ready is not None
        if run.row.ready(self.home):
            run.phase = "ready"
            self.say(f"{run.row.name} ready after {time.monotonic() - run.since:.1f} s")
            run.since = time.monotonic()
        elif time.monotonic() > run.since + run.row.start_within_s:
            self.say(f"{run.row.name} is not ready after {run.row.start_within_s:.0f} s: restarted")
            self.kill(run.row.name)
        else:
            run.due = time.monotonic() + STEP_EVERY_S

    def _exited(self, run: Run, now: float) -> None:
        assert run.process is not None
        code = run.exit = run.process.returncode
        _kill_group(run.process)  # its own children must not outlive it
        run.process = None
        if run.phase == "stopped":
            return
        if run.row.ready is None and code == 0:
            run.phase = "done"
            self.say(f"{run.row.name} done after {now - run.since:.1f} s")
            return
        if run.phase == "ready" and now - run.since > STEADY_S:
            run.failures = 0
        self._back_off(run, now)
        log = self.home.log(run.row.name)
        self.say(f"{run.row.name} exited with {code}; again in {run.due - now:.1f} s, see {log}")

    def _back_off(self, run: Run, now: float) -> None:
        run.phase = "backing off"
        run.due = now + min(LAST_BACKOFF_S, FIRST_BACKOFF_S * 2**run.failures)
        run.failures += 1

    def _end_now(self, run: Run) -> None:
        if run.process is not None:
            _kill_group(run.process)
            run.process.wait()
            run.process = None

    def _wait_end(self, run: Run) -> None:
        if run.process is None:
            return
        try:
            run.process.wait(max(0.0, run.due - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.say(f"{run.row.name} did not stop within {run.row.stop_within_s:.0f} s: killed")
        self._end_now(run)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _die_with(parent: int) -> None:
    """Run in the child: have it killed when the supervisor dies, or kill it if the supervisor is dead already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
