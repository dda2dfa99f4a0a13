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

    def of(connection: dict[str, Any]) -> Tenant:
        file = tmp_path / "kubeconfig"
        file.write_text(connection["kubeconfig"], encoding="utf-8")

        def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
            command = [str(local.binaries / "kubectl"), f"--kubeconfig={file}", *arguments]
            return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False, timeout=180)

        return run

    return of


def apply_pod(tenant: Tenant, pod_yaml: str) -> None:
    made = tenant("apply", "-f", "-", stdin=pod_yaml)
    assert made.returncode == 0, made.stderr


def running(tenant: Tenant, pod: str) -> dict[str, Any]:
    def pod_if_running() -> dict[str, Any] | None:
        manifest: dict[str, Any] = json.loads(tenant("get", "pod", pod, "-o", "json").stdout)
        return manifest if manifest["status"].get("phase") == "Running" else None

    manifest = eventually(pod_if_running)
    assert manifest is not None
    return manifest
