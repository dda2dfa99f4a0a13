"""PostgreSQL and Redis for a test run or a command, if `DATABASE_URL` and `REDIS_URL` are not set.

As a pytest plugin (`-p tests.services`, in pyproject.toml) it sets the environment before Django's settings are read.
`python -m tests.services <command...>` runs a command, such as `python manage.py shell`, in the same environment. Each
of several processes (`pytest -n`) has stores of its own, whose new databases are migrated already.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from deploy.local import stores
from deploy.local.errors import LocalError

ENVIRONMENT = {
    "SECRET_KEY": "only-for-tests",
    "GPU_PORTAL_LOCAL": "1",
    "LOG_LEVEL": "WARNING",
    "ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE": "100000",
    "PROCESSOR_SECONDS_PER_MINUTE": "100000",  # a test asks more in a moment than a person does
}
ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "build"
"""Holds the data folder of a stopped PostgreSQL, named by what its template database was migrated with."""
STARTED = "TEST_SERVICES_STARTED"
"""Names of the variables that show which stores a parent process started."""
# Durability is off: the data is thrown away with the folder.
FAST = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200", "listen_addresses="),
    # It sees no row of a test's transaction, and would tell the planner that tables are empty.
    "autovacuum=off",
)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL from the wheel with its data in `folder`, on a Unix socket; yield its URL once it answers.

    What it creates databases from is migrated. The first process after a change migrates, and the others copy.
    """
    if os.geteuid() == 0:
        os.chown(folder, stores.NOBODY, stores.NOBODY)  # for the socket
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = KEPT / _migrations()
        if kept.exists():
            _copy(kept, folder / "data")
        else:
            stores.initialize_postgres(folder / "data", "--auth=trust", "--no-sync")
            _keep(folder, kept)
    with _serving(folder) as url:
        yield url


def _migrations() -> str:
    """Return a digest of all migrations, and of the versions of PostgreSQL and Django."""
    digest = hashlib.sha256()
    for path in (ROOT / "requirements.lock", *sorted(ROOT.glob("[!.]*/**/migrations/*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _keep(folder: Path, kept: Path) -> None:
    """Migrate the template database and keep the data for other processes; a migration that fails leaves it to the
    tests to say so.
    """
    with _serving(folder) as url:
        variables = {**ENVIRONMENT, **os.environ, "DATABASE_URL": url.replace("/postgres?", "/template1?")}
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        failed = subprocess.run(migrate, cwd=ROOT, env=variables, stderr=subprocess.DEVNULL).returncode
    if failed:
        return
    for old in KEPT.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    _copy(folder / "data", KEPT / "unfinished")
    (KEPT / "unfinished").rename(kept)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    options = [word for setting in (*FAST, f"unix_socket_directories={folder}") for word in ("-c", setting)]
    url = f"postgresql://portal@/postgres?host={folder}"
    server = [str(stores.postgres_binaries() / "postgres"), "-D", str(folder / "data"), *options]
    with _process([*(stores.drop_root() or stores.end_with_parent()), *server], signal.SIGINT):
        _wait(lambda: psycopg.connect(url, connect_timeout=2).close(), psycopg.OperationalError)
        yield url


@contextmanager
def redis(folder: Path, port: int = 0) -> Iterator[str]:
    """Run a Redis from the wheel on `port` or a free one of 127.0.0.1, without persistence; yield its URL once it
    answers.
    """
    port = port or free_port()
    words = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder))
    with _process([*stores.end_with_parent(), str(stores.redis_server()), *words], signal.SIGTERM):
        _wait(lambda: socket.create_connection(("127.0.0.1", port), timeout=1).close(), OSError)
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _process(command: list[str], stop: signal.Signals) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.send_signal(stop)


def _wait(connect: Callable[[], None], refusal: type[Exception], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            return connect()
        except refusal:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running() -> Iterator[None]:
    """Start the stores that the environment does not name, and set their variables until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-portal-")))
        folder.chmod(0o755)
        started = os.environ.get(STARTED, "").split() if "PYTEST_XDIST_WORKER" in os.environ else []
        for name, start in (("DATABASE_URL", postgres), ("REDIS_URL", redis)):
            if name not in os.environ or name in started:
                (folder / name).mkdir()
                os.environ[name] = stack.enter_context(start(folder / name))
                stack.callback(os.environ.pop, name)
                os.environ[STARTED] = f"{os.environ.get(STARTED, '')} {name}"
                stack.callback(os.environ.pop, STARTED, None)
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    stack = ExitStack()
    try:
        stack.enter_context(running())
    except LocalError as error:
        raise pytest.UsageError(str(error)) from error
    early_config.add_cleanup(stack.close)
    yield


if __name__ == "__main__":
    with running():
        sys.exit(subprocess.call(sys.argv[1:]))
