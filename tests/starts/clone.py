"""A fresh clone of what is committed here, and what a person does with it: make, and Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from deploy.local.build import build
from deploy.local.home import REPOSITORY

OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
WITHIN_S = 1200.0
STOPS_WITHIN_S = 90.0


@dataclass
class Clone:
    """A clone at `folder`, used by `user` (a number; None: who runs this) with `variables`; None removes one."""

    folder: Path
    user: int | None = None
    variables: dict[str, str | None] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / ".local"

    def make(self, *arguments: str, **variables: str | None) -> tuple[int, str]:
        """Return the exit code and the output of make; raise TimeoutError if it does not end."""
        with self.making(*arguments, **variables) as (process, output):
            wait(lambda: process.poll() is not None, f"make {' '.join(arguments)}")
            return process.returncode, output()

    @contextmanager
    def making(
        self, *arguments: str, **variables: str | None
    ) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
        """Run make as a terminal does, in a process group; yield it and a function that returns its output so far."""
        log = self.folder.with_suffix(".log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["make", *arguments],
                cwd=self.folder,
                env=self._environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        try:
            yield process, lambda: log.read_text(errors="replace")
        finally:
            if process.poll() is None:
                self.interrupt(process)

    def interrupt(self, process: subprocess.Popen[bytes]) -> float:
        """Press Ctrl-C; return the seconds until make ended and no process of the clone was left."""
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        wait(lambda: process.poll() is not None and not self.processes(), "Ctrl-C", STOPS_WITHIN_S)
        return time.monotonic() - began

    def processes(self) -> list[psutil.Process]:
        """Return the processes that run in the clone."""
        return [process for process in psutil.process_iter() if self._has(process)]

    def hold_one(self) -> float:
        """Request a GPU of the running portal and release it; return the seconds until it was held."""
        demo = json.loads((self.data / "demo.json").read_text())
        access = {"GPU_PORTAL_URL": demo["url"], "GPU_PORTAL_TOKEN": demo["tokens"]["vision-member"]}
        portal = str(self.folder / ".venv" / "bin" / "gpu-portal")
        began = time.monotonic()
        request = [portal, "request", "--project=vision-train", "--offering=h100/whole", "--wait", "--output=json"]
        answer = subprocess.run(request, env={**os.environ, **access}, check=True, capture_output=True, timeout=120)
        took = time.monotonic() - began
        release = [portal, "release", json.loads(answer.stdout)["id"]]
        subprocess.run(release, env={**os.environ, **access}, check=True, capture_output=True, timeout=60)
        return took

    def _has(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(self.folder)
        except (psutil.Error, OSError):
            return False

    def _environment(self, variables: dict[str, str | None]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
        changed = {**kept, **self.variables, **variables}
        return {name: value for name, value in changed.items() if value is not None}


def clone(folder: Path) -> Clone:
    """Return a clone in a folder that only its owner may enter."""
    folder.parent.mkdir(mode=0o700)
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, folder], check=True)
    return Clone(folder)


def clone_of_user(folder: Path, user: int) -> Clone:
    """Return a clone of another user, whose home folder has the programs already."""
    made = clone(folder)
    programs = build()
    home = folder.parent / "home"
    shutil.copytree(programs, home / ".cache" / "gpu-portal" / "bin" / programs.name)
    for place in (folder.parent, *folder.parent.rglob("*")):
        os.chown(place, user, user, follow_symlinks=False)
    path = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"
    return Clone(made.folder, user, {"HOME": str(home), "PATH": path, "XDG_CACHE_HOME": None})


def wait(is_so: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s:.0f} s")
        time.sleep(0.1)
