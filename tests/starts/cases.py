"""The cases of `make starts`. Each returns what was seen, and raises where that is not as it should be."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path

from tests.starts.clone import Clone, clone, clone_of_user, wait

Case = Callable[[], str]
NOWHERE = "127.0.0.1:1"
OTHER_USER = 1  # daemon, on every Linux
REFUSED_WITHIN_S = 10.0


class Skipped(Exception):
    """What a case needs is not here."""


def table(folder: Path, pause_s: float, pythons: list[str]) -> dict[str, Case]:
    """Return the cases by name, in their order: the first clone serves most of them."""
    own = Own(folder / "own" / "gpu portal")
    return {
        "Ctrl-C while packages are installed": partial(own.interrupted, own.installs),
        "Ctrl-C while docs are made": partial(own.interrupted, own.makes_docs),
        "Ctrl-C while the control plane is built": partial(
            own.interrupted, lambda: "[1/7]" in own.output(), XDG_CACHE_HOME=str(folder / "cache")
        ),
        "Ctrl-C while it starts": partial(own.interrupted, lambda: "etcd ready" in own.output()),
        "Ctrl-C of make up": partial(own.interrupted, lambda: "etcd ready" in own.output(), target="up"),
        "Ctrl-C when it runs": partial(own.interrupted, lambda: "everything is ready" in own.output()),
        "folder 0700, the second start": own.starts,
        "umask 077": partial(own.starts, is_new=True, umask=0o077),
        "no HOME": partial(own.starts, home=None),
        "PYTHONPATH, PYTHONHOME, VIRTUAL_ENV, DJANGO_SETTINGS_MODULE of something else": own.starts_in_another_project,
        "ports taken": own.starts_beside_others,
        f"every process stopped for {pause_s:.0f} s": partial(own.is_stopped, pause_s),
        "DATABASE_URL that leads nowhere": partial(
            own.refuses, "DATABASE_URL is set, but", DATABASE_URL=f"postgresql://{NOWHERE}/other"
        ),
        "REDIS_URL that leads nowhere": partial(own.refuses, "REDIS_URL is set, but", REDIS_URL=f"redis://{NOWHERE}/0"),
        "less than 2 GiB of disk, programs built": partial(own.refuses_disk, "size=1G", "A start needs about 2 GiB"),
        "read-only disk": partial(own.refuses_disk, "ro", "can only be read"),
        "less than 6 GiB of disk, programs not built": partial(own.refuses_cache, "needs about 6 GiB"),
        "a process that fails each time": own.fails,
        "another user than root, umask 077": partial(another_user, folder / "other" / "gpu-portal"),
        **{
            f"{python} as python3": partial(another_python, folder / f"python{number}" / "gpu-portal", python)
            for number, python in enumerate(pythons)
        },
    }


class Own:
    """The clone of who runs this, made at the first use, below a folder of mode 0700 with a space in its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def clone(self) -> Clone:
        return clone(self.folder)

    def output(self) -> str:
        return self.folder.with_suffix(".log").read_text(errors="replace")

    def installs(self) -> bool:
        return any(self.folder.glob(".venv/lib/*/site-packages/django"))

    def makes_docs(self) -> bool:
        return (self.folder / "docs" / "build" / "doctrees").exists()

    def interrupted(self, is_there: Callable[[], bool], target: str = "demo", **variables: str | None) -> str:
        with self.clone.making(target, **variables) as (process, output):
            wait(lambda: is_there() or process.poll() is not None, "the stage")
            assert process.poll() is None, output()[-2000:]
            took = self.clone.interrupt(process)
        assert process.returncode != 0
        return f"all ended within {took:.1f} s"

    def starts(self, *, is_new: bool = False, umask: int = 0o022, home: str | None = os.environ.get("HOME")) -> str:
        os.umask(umask)
        if is_new:
            shutil.rmtree(self.clone.data, ignore_errors=True)
        with started(self.clone, HOME=home) as seen:
            return seen

    def starts_in_another_project(self) -> str:
        other = self.folder.parent / "other"
        other.mkdir()
        for module in ("django", "yaml", "pip", "sphinx"):
            (other / f"{module}.py").write_text("raise ImportError('of another project')")
        nowhere = {"PYTHONHOME": str(other), "VIRTUAL_ENV": str(other), "DJANGO_SETTINGS_MODULE": "other.settings"}
        with started(self.clone, PYTHONPATH=str(other), **nowhere) as seen:
            return seen

    def starts_beside_others(self) -> str:
        ports = json.loads((self.clone.data / "ports.json").read_text())
        with ExitStack() as stack:
            for port in ports.values():
                other = stack.enter_context(socket.create_server(("127.0.0.1", port)))
                assert other.getsockname()[1] == port
            with started(self.clone) as seen:
                now = json.loads((self.clone.data / "ports.json").read_text())
        assert not set(ports.values()) & set(now.values())
        return f"{seen}; {len(now)} other ports"

    def is_stopped(self, pause_s: float) -> str:
        with started(self.clone):
            stopped = self.clone.processes()
            for process in stopped:
                process.send_signal(signal.SIGSTOP)
            time.sleep(pause_s)
            for process in stopped:
                process.send_signal(signal.SIGCONT)
            held_in = self.clone.hold_one()
            wait(self.is_well, "ready again", 120.0)
            gone = sum(not process.is_running() for process in stopped)
        return f"{len(stopped)} processes, {gone} of them replaced; a GPU held in {held_in:.0f} s, and all ready"

    def is_well(self) -> bool:
        code, output = self.clone.make("status")
        rows = [line.split()[1] for line in output.splitlines() if " starts " in line]
        return code == 0 and set(rows) == {"ready", "done"}

    def refuses(self, sentence: str, *, within_s: float = REFUSED_WITHIN_S, **variables: str | None) -> str:
        began = time.monotonic()
        code, output = self.clone.make("demo", **variables)
        took = time.monotonic() - began
        told = [line for line in output.splitlines() if sentence in line]
        assert code != 0, output[-2000:]
        assert told, output[-2000:]
        assert took < within_s, f"only after {took:.0f} s"
        assert self.clone.processes() == []
        return f"after {took:.1f} s: {told[0]}"

    def refuses_disk(self, options: str, sentence: str) -> str:
        self.clone.data.mkdir(exist_ok=True)
        with mounted(self.clone.data, options):
            return self.refuses(sentence)

    def refuses_cache(self, sentence: str) -> str:
        cache = self.folder.parent / "small"
        cache.mkdir()
        with mounted(cache, "size=1G"):
            return self.refuses(sentence, XDG_CACHE_HOME=str(cache))

    def fails(self) -> str:
        with started(self.clone):
            pass
        (self.clone.data / "postgres" / "data" / "PG_VERSION").unlink()
        return self.refuses("postgres does not become ready", within_s=90.0)


@contextmanager
def started(made: Clone, *arguments: str, **variables: str | None) -> Iterator[str]:
    """Start the portal, have it hold a GPU, and stop it again; yield what was seen."""
    began = time.monotonic()
    code, output = made.make("up", *arguments, **variables)
    took = time.monotonic() - began
    assert code == 0, output[-3000:]
    try:
        yield f"ready after {took:.0f} s, a GPU held in {made.hold_one():.0f} s"
    finally:
        code, output = made.make("down", **variables)
    assert code == 0, output[-2000:]
    assert made.processes() == []


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Put a memory disk with these options at `folder`."""
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]).returncode:
        raise Skipped("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def another_user(folder: Path) -> str:
    if os.geteuid() != 0:
        raise Skipped("this is not root")
    os.umask(0o077)
    made = clone_of_user(folder, OTHER_USER)
    with started(made) as seen:
        assert {process.uids().real for process in made.processes()} == {OTHER_USER}
        return seen


def another_python(folder: Path, python: str) -> str:
    found = shutil.which(python)
    if found is None or subprocess.run([found, "-V"], capture_output=True, check=False).returncode:
        raise Skipped(f"there is no {python}")
    made = clone(folder)
    with started(made, f"BASE={found}") as seen:
        program = Path(found).resolve().name
        assert program in {Path(process.exe()).name for process in made.processes()}
        return f"{seen}; {program}"
