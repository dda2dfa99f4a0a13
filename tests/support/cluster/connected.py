"""A person with the kubeconfig from `connect`, and nothing else."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.runner import Local
from tests.support.cluster.stage import Person, person_with
from tests.support.cluster.waiting import eventually


@dataclass(frozen=True)
class Tenant:
    """The person by kubectl, in the namespace of the kubeconfig, and by an HTTP client."""

    person: Person

    def __call__(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [self.person.kubectl, f"--kubeconfig={self.person.kubeconfig}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False, timeout=180)


@pytest.fixture
def tenant(local: Local, tmp_path: Path) -> Callable[[dict[str, Any]], Tenant]:
    """Return a function that returns the person with the kubeconfig of an answer of `connect`."""

    def of(connection: dict[str, Any]) -> Tenant:
        file = tmp_path / "kubeconfig"
        file.write_text(connection["kubeconfig"], encoding="utf-8")
        [context] = yaml.safe_load(connection["kubeconfig"])["contexts"]
        return Tenant(person_with(local.home, file, context["context"]["namespace"]))

    return of


def apply_pod(tenant: Tenant, pod_yaml: str) -> None:
    made = tenant("apply", "-f", "-", stdin=pod_yaml)
    assert made.returncode == 0, made.stderr


def running(tenant: Tenant, pod: str) -> dict[str, Any]:
    def pod_if_running() -> dict[str, Any]:
        manifest = tenant.person.get("pod", pod)
        return manifest if manifest["status"].get("phase") == "Running" else {}

    return eventually(pod_if_running)
