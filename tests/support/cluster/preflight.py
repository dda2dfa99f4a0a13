"""Runs the command `manage.py preflight` as an operator does."""

import json
import os
import subprocess
import sys
from pathlib import Path

from deploy.local.home import REPOSITORY


def preflight(*arguments: str, kubeconfig: Path | None = None) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit status, and the findings by their check."""
    env = {**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})}
    command = [sys.executable, "manage.py", "preflight", "--output=json", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout, done.stderr
    return done.returncode, {found["check"]: found for found in json.loads(done.stdout)["checks"]}
