"""The whole portal on a real control plane, for the tests of tests/cluster (by default) and tests/faults.

    python -m tests.stack [pytest arguments]

brings up one local cluster with stores and portal (deploy/local), runs pytest in its environment, and takes it down.
Tests then use the services in process, on the very database of the running portal, beside REST and kubectl.
GPU_PORTAL_TEST_HOME names a home to use instead of a fresh one; one that runs already is used as it is, and left
running: quick while a test is being written.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.local.runner import Local

DEADLINES = {
    "START_DEADLINE_S": "6",
    "START_BACKOFF_S": "1",
    "GRACE_S": "3",
    "SWEEP_S": "5",
    "WORKER_STUCK_S": "30",
    "API_REQUESTS_PER_MINUTE": "100000",
    "PAGE_REQUESTS_PER_MINUTE": "100000",
    "PROCESSOR_SECONDS_PER_MINUTE": "100000",
    "PERSON_REQUESTS_AT_ONCE": "4",
    "LOG_LEVEL": "INFO",
}
"""Short, so that tests of deadlines end; the same for the portal's processes and for the tests."""
TESTS = ("tests/cluster",)


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
    local.up()
    try:
        place = {"DATABASE_OWNER_URL": local.home.owner_url(), "GPU_PORTAL_TEST_HOME": str(local.root)}
        env = {**os.environ, **local.env(), **place, "LOG_LEVEL": "WARNING"}
        arguments = sys.argv[1:] or list(TESTS)
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=env, check=False).returncode
    finally:
        if not keep:
            local.down()


if __name__ == "__main__":
    sys.exit(main())
