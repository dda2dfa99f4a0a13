"""kubectl with the kubeconfig from `connect`, and nothing else."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.local.runner import Local
from tests.support.cluster.waiting import eventually

Tenant = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tenant(local: Local, tmp_path: Path) -> Callable[[dict[str, Any]], Tenant]:
    """Return a function that returns kubectl with the kubeconfig of an answer of `connect`."""

    def of(given: dict[str, Any]) -> Tenant:
        file = tmp_path / "kubeconfig"
        file.write_text(given["kubeconfig"], encoding="utf-8")

        def run(*words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
            command = [str(local.binaries / "kubectl"), f"--kubeconfig={file}", *words]
            return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False, timeout=60)

        return run

    return of


def apply_pod(tenant: Tenant, pod_yaml: str) -> None:
    made = tenant("apply", "-f", "-", stdin=pod_yaml)
    assert made.returncode == 0, made.stderr


def running(tenant: Tenant, pod: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = json.loads(tenant("get", "pod", pod, "-o", "json").stdout)
        return found if found["status"].get("phase") == "Running" else None

    found = eventually(look)
    assert found is not None
    return found
