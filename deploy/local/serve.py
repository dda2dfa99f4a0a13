"""The supervisor process of a home: takes the lock, ends leftovers, runs the table, answers requests."""

import contextlib
import fcntl
import json
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from deploy.local import control, failed_start, leftovers
from deploy.local.build import build, cache_root
from deploy.local.certs import ensure_certificates
from deploy.local.errors import LocalError
from deploy.local.home import Home, claims, open_home
from deploy.local.kubeconfigs import write_kubeconfigs
from deploy.local.processes import table
from deploy.local.supervisor import STEP_EVERY_S, Supervisor

LOCK = "supervisor.lock"
REQUEST_TIMEOUT_S = 1.0


def supervise(
    root: Path, groups: tuple[str, ...], say: Callable[[str], None], start_within_s: float | None = None
) -> None:
    """Run `groups` until told to stop (request `down`, SIGTERM, SIGINT); with `start_within_s` also until a start has
    failed, which raises LocalError. Without it the caller of `Local.up` decides. Steps:
    1. take the lock; return if another supervisor has this home;
    2. end leftovers of an earlier one, then claim its ports, replacing those in use;
    3. write certificates and kubeconfigs;
    4. run the loop;
    5. stop all in order.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root) as is_locked:
        if not is_locked:
            return
        if ended := leftovers.end(root):
            say(f"ended {len(ended)} processes of an earlier run")
        with claims(cache_root() / "ports") as claim:
            home = open_home(root, build(say), claim)
            ensure_certificates(home.certs)
            write_kubeconfigs(home)
            _Server(home, groups, say).run(start_within_s)


def is_running(root: Path) -> bool:
    """Return whether a supervisor runs for this home."""
    if not (root / LOCK).exists():
        return False
    with _lock(root) as free:
        return not free


def describe(home: Home, groups: Iterable[str]) -> str:
    """Return a message for the person at the terminal: the portal's address and the kubeconfig."""
    portal = f"open {home.url}, or " if "portal" in groups else ""
    return f"{portal}export KUBECONFIG={home.kubeconfig}"


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[bool]:
    with (root / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


class _Server:
    """Connects the supervisor's loop with the control socket and the signals."""

    def __init__(self, home: Home, groups: tuple[str, ...], say: Callable[[str], None]) -> None:
        self.home = home
        self.groups = groups
        self.stopping = False
        self.announced = False
        self.say = say
        self.began = time.monotonic()
        self.supervisor = Supervisor(home, table(home, groups), say)

    def run(self, start_within_s: float | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        with contextlib.closing(control.listen(self.home.root)) as server:
            server.settimeout(STEP_EVERY_S)
            try:
                while not self.stopping:
                    self.supervisor.step()
                    self._announce()
                    if start_within_s is not None and not self.announced:
                        is_late = time.monotonic() > self.began + start_within_s
                        rows = self.supervisor.status()
                        failed_start.raise_if_failed(rows, {}, self.home.binaries, is_late=is_late)
                    self._serve(server)
            finally:
                self.supervisor.stop_all()

    def _announce(self) -> None:
        """Report once that all groups of the start are ready."""
        if not self.announced and self.supervisor.is_up():
            self.announced = True
            took = time.monotonic() - self.began
            self.say(f"everything is ready after {took:.0f} s: {describe(self.home, self.groups)}")

    def _stop(self) -> None:
        self.stopping = True

    def _serve(self, server: socket.socket) -> None:
        """Answer one request; return after STEP_EVERY_S without one."""
        with contextlib.suppress(OSError), contextlib.closing(server.accept()[0]) as connection:
            connection.settimeout(REQUEST_TIMEOUT_S)
            try:
                answer = {"ok": self._answer(json.loads(control.receive_line(connection)))}
            except (LocalError, KeyError, ValueError) as error:
                answer = {"error": str(error)}
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> object:
        supervisor = self.supervisor
        match request["do"]:
            case "status":
                return supervisor.status()
            case "add":
                rows = table(self.home, tuple(request["groups"]))
                supervisor.add(rows)
                return [row.name for row in rows]
            case "start" | "stop" | "hold" | "kill" as action:
                getattr(supervisor, action)(request["name"])
            case "down":
                self._stop()
            case unknown:
                raise LocalError(f"unknown request {unknown}")
        return None
