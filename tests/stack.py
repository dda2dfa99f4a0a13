"""The whole portal on a real control plane, for the tests of tests/cluster, tests/faults and tests/stage.

    python -m tests.stack [pytest arguments]

brings up one local cluster with stores and portal (deploy/local), runs pytest in its environment, and takes it down.
Without arguments it runs PARTS one after the other, with ``--long`` those of LONG. Faults come last, since nothing can
share the stack with them. Tests then use the services in process, on the very database of the running portal, beside
REST and kubectl.
GPU_PORTAL_TEST_HOME names a home to use instead of a fresh one; one that runs already is used as it is, and left
running: quick while a test is being written.
"""

import os
import subprocess
import sys
import tempfile
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
    "PROCESSOR_SECONDS_PER_MINUTE": "100000",
    "PERSON_REQUESTS_AT_ONCE": "4",
    "LOG_LEVEL": "INFO",
}
"""Short, so that tests of deadlines end; the same for the portal's processes and for the tests."""
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
    os.environ |= DEADLINES
    given = os.environ.get("GPU_PORTAL_TEST_HOME")
    if given:
        return _run(Path(given), keep=True)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        return _run(Path(folder), keep=False)


def _run(home: Path, *, keep: bool) -> int:
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
        codes = [_pytest(arguments, env) for arguments in _runs(sys.argv[1:])]
        return next((code for code in codes if code), 0)
    finally:
        if not keep:
            with minutes.timed(minutes.STOP):
                local.down()


def _runs(given: list[str]) -> list[list[str]]:
    """Return the arguments of each run of pytest."""
    parts = {"": PARTS, "--long": LONG}.get(" ".join(given))
    return [[*arguments, f"--part={name}"] for name, arguments in parts.items()] if parts else [given]


def _pytest(arguments: list[str], env: dict[str, str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
