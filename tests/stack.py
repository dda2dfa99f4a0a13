"""The whole portal on a real control plane, for the tests of tests/cluster, tests/faults and tests/stage.

    python -m tests.stack [pytest arguments]

brings up one local cluster with stores and portal (deploy/local), runs pytest in its environment, and takes it down.
Without arguments it runs the whole suite: PARTS one after the other, and beside them the fast part, since they wait
half of the time. Faults come last, since nothing can share the stack with them. With ``--long`` it runs LONG instead,
in the same way. Tests then use the services in process, on the very database of the running portal, beside REST and
kubectl.
GPU_PORTAL_TEST_HOME names a home to use instead of a fresh one; one that runs already is used as it is, and left
running: quick while a test is being written.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.local.runner import Local
from tests import minutes

DEADLINES = {
    "START_DEADLINE_S": "6",
    "START_BACKOFF_S": "1",
    "GRACE_S": "3",
    "SWEEP_S": "5",
    "WORKER_STUCK_S": "30",
    "AUDIT_SEAL_S": "15",
    "API_REQUESTS_PER_MINUTE": "100000",
    "PAGE_REQUESTS_PER_MINUTE": "100000",
    "ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE": "100000",
    "PROCESSOR_SECONDS_PER_MINUTE": "100000",
    "PERSON_REQUESTS_AT_ONCE": "4",
    "LOG_LEVEL": "INFO",
}
"""Short, so that tests of deadlines end; the same for the portal's processes and for the tests."""
AUDIT = {"APISERVER_AUDIT": "1"}
"""The API server writes down what the portal asks: tests/cluster/test_portal_rights.py."""
PYTEST = (sys.executable, "-m", "pytest")
FAST = (
    *(f"--ignore=tests/{folder}" for folder in ("cluster", "faults", "monitoring", "stage")),
    *("-n", "auto", "--dist", "loadfile"),
    "--reuse-db",  # the databases are thrown away with their servers
)
BEHIND = "10"  # nice
HOSTILE_MEMBER = "tests/cluster/test_hostile_member.py"
PARTS = {
    "cluster": ("tests/cluster", f"--ignore={HOSTILE_MEMBER}"),
    "hostile member": (HOSTILE_MEMBER, "--minutes=2"),
    "faults": ("tests/faults",),
}
LONG = {
    "hostile member, 10 minutes": (HOSTILE_MEMBER, "--minutes=10"),
    "50 kills, 20 minutes": ("tests/faults/test_random_kills.py", "--minutes=20", "--kills=50"),
}


def main() -> int:
    outside = dict(os.environ)
    os.environ |= DEADLINES | AUDIT
    given = os.environ.get("GPU_PORTAL_TEST_HOME")
    if given:
        return _run(Path(given), outside, keep=True)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        return _run(Path(folder), outside, keep=False)


def _run(home: Path, outside: Mapping[str, str], *, keep: bool) -> int:
    home.mkdir(parents=True, exist_ok=True)
    local = Local(home, say=print)
    keep = keep and local.is_up()
    with minutes.timed(minutes.BUILD):
        local.binaries  # noqa: B018 - built here
    with minutes.timed(minutes.START):
        local.up()
    try:
        place = {"DATABASE_OWNER_URL": local.home.owner_url(), "GPU_PORTAL_TEST_HOME": str(local.root)}
        env = {**os.environ, **local.env(), **place, "LOG_LEVEL": "WARNING"}
        match sys.argv[1:]:
            case []:
                with minutes.timed(minutes.TOGETHER):
                    codes = list(_suite(PARTS, env, [*FAST, "--part=fast part"], outside))
            case ["--long"]:
                codes = list(_suite(LONG, env, [*FAST, "--long", "--part=fast part, full sizes"], outside))
            case arguments:
                codes = [_pytest(arguments, env)]
        return next((code for code in codes if code), 0)
    finally:
        if not keep:
            with minutes.timed(minutes.STOP):
                local.down()


def _suite(
    parts: Mapping[str, Sequence[str]], env: Mapping[str, str], beside: Sequence[str], outside: Mapping[str, str]
) -> Iterator[int]:
    """Yield the exit code of each part, and of the tests that run beside them."""
    with _behind_all_else([*PYTEST, *beside], outside) as fast:
        for name, arguments in parts.items():
            yield _pytest([*arguments, f"--part={name}"], env)
    yield fast.returncode


def _pytest(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    return subprocess.run([*PYTEST, *arguments], env=env, check=False).returncode


@contextmanager
def _behind_all_else(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with what others leave of the processors, but a tenth at least, since its browsers and stores have
    timeouts of their own; wait for its end and print its output after the block.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["nice", "-n", BEHIND, *command], env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        with suppress(OSError):  # Linux may weigh sessions instead of processes: sched(7), autogroup
            Path(f"/proc/{process.pid}/autogroup").write_text(BEHIND, encoding="ascii")
        try:
            yield process
            process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
