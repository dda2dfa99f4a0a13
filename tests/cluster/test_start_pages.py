"""The commands of the pages that people begin with, run to the letter as a member.

Replaced is what stands for something of the reader's: address, token, project and pod. On a simulated node a pod ends
if an annotation says when, and there are no logs: `kubectl logs` says nothing here.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from uuid import uuid4

import pytest
import yaml

from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import wait_for
from tests.support.pipelines import runner_environment

pytestmark = pytest.mark.cluster
BLOCK = re.compile(r"^ *```(?P<language>\w+)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass
class Reader:
    """A member in a folder of their own, with a terminal."""

    folder: Path
    environment: dict[str, str]

    def types(self, commands: str, **stands_for: str) -> str:
        """Run commands as a shell script does; return what they print. Words of the page are replaced first."""
        for word, meant in {"vision-train": self.environment["GPU_PORTAL_PROJECT"], **stands_for}.items():
            commands = commands.replace(word, meant)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def saves(self, pod: str, **stands_for: str) -> None:
        """Save the pod of a page, which ends after a second on a simulated node."""
        for word, meant in stands_for.items():
            pod = pod.replace(word, meant)
        manifest = yaml.safe_load(pod)
        manifest["metadata"]["annotations"] = {"gpu-portal.io/run-for": "1s"}
        (self.folder / "pod.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")


@pytest.fixture
def reader(local: Local, member: User, project: Project, tmp_path: Path) -> Reader:
    _, secret = tenants.issue_token(SYSTEM, member, "reader", ["read", "request"], timedelta(hours=1))
    url = local.env()["PORTAL_URL"]
    environment = runner_environment(tmp_path, url, secret, project.slug, local.binaries)
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\n[ "$1" = logs ] || exec {local.binaries}/kubectl "$@"\n', encoding="utf-8")
    kubectl.chmod(0o700)
    return Reader(tmp_path, environment)


def blocks(page: str, language: str) -> list[str]:
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [dedent(block["text"]) for block in BLOCK.finditer(text) if block["language"] == language]


def test_a_pipeline_runs_as_the_page_for_its_owner_says(reader: Reader) -> None:
    create_token, export, run, _ = blocks("start/pipeline", "sh")
    [pod] = blocks("start/pipeline", "yaml")
    token = reader.types(create_token).strip()
    reader.saves(pod)
    reader.environment["RUN_ID"] = uuid4().hex[:8]
    url = reader.environment.pop("GPU_PORTAL_URL")
    reader.types(export + run, **{"https://gpu.example.com": url, "gpup_…": token})
    row = Allocation.objects.get(name=f"run-{reader.environment['RUN_ID']}")
    assert wait_for(row, Phase.ENDED).outcome == Outcome.RELEASED


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_request_by_curl_and_its_repeat_are_one(reader: Reader) -> None:
    curl = blocks("start/pipeline", "sh")[-1]
    reader.environment["RUN_ID"] = uuid4().hex[:8]
    first, again = (yaml.safe_load(reader.types(curl)) for _ in range(2))
    assert first["id"] == again["id"]


def test_an_engineer_gets_a_pod_on_a_gpu_as_the_page_says(reader: Reader) -> None:
    in_browser, in_terminal = blocks("start/engineer", "sh")
    [pod] = [text for text in blocks("how-to/connect", "yaml") if "kind: Pod" in text]
    reader.saves(pod, NAME="first")
    held, release = in_terminal.rsplit("gpu-portal release", 1)
    reader.types(held)
    reader.types(in_browser, **{"<name>": "first"})
    reader.types(f"gpu-portal release {release}")
    row = Allocation.objects.filter(project__slug=reader.environment["GPU_PORTAL_PROJECT"], name="first").latest(
        "created_at"
    )
    assert wait_for(row, Phase.ENDED).outcome == Outcome.RELEASED


def test_an_operator_sees_the_cluster_as_the_page_says(reader: Reader, kubeconfig: Path) -> None:
    _, watch = blocks("start/operator", "sh")
    assert "gpuproject" in reader.types(watch, **{".local/kubeconfig": str(kubeconfig)})
