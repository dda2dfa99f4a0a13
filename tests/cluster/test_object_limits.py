"""What an operator sets of a project's objects, as its members meet it; and what the API server tells of etcd."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from allocations.cluster.client import connect
from allocations.domain.etcd_usage import Level
from allocations.reconcile import etcd_monitor
from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.models import Project, User
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.tenants import person_of
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(project: Project, member: User, local: Local, tmp_path: Path) -> Run:
    """kubectl as a member of the project, who may already enter it."""
    person = person_of(local, tmp_path, member, project.namespace)
    eventually(lambda: person.run("get", "configmaps").returncode == 0)
    return person.run


def hard(kubectl: Kubectl, namespace: str) -> dict[str, str]:
    """The limits that the quota controller has taken up."""
    quota = json.loads(kubectl("get", "resourcequota", "gpu-portal-objects", "-n", namespace, "-o", "json"))
    return dict(quota.get("status", {}).get("hard") or {})


def test_a_number_that_an_operator_sets_is_in_the_quota_and_binds(project: Project, run: Run, kubectl: Kubectl) -> None:
    structure.configure_project(project, object_limits={"configmaps": 10}, actor="operator")
    eventually(lambda: hard(kubectl, project.namespace).get("configmaps") == "10")
    answers = [run("create", "configmap", f"c-{number}") for number in range(11)]
    assert answers[0].returncode == 0, answers[0].stderr
    assert "exceeded quota: gpu-portal-objects" in answers[-1].stderr
    structure.configure_project(project, object_limits={"configmaps": None}, actor="operator")
    eventually(lambda: run("create", "configmap", "more").returncode == 0)


def test_a_size_that_an_operator_sets_is_the_most_that_a_config_map_may_have(project: Project, run: Run) -> None:
    halves = [f"--from-literal={key}={'x' * 75_000}" for key in ("a", "b")]
    create = ("create", "configmap", "large", *halves, "--dry-run=server")
    eventually(lambda: "128 KiB are the most" in run(*create).stderr)
    structure.configure_project(project, config_size_kib=200, actor="operator")
    eventually(lambda: run(*create).returncode == 0)
    structure.configure_project(project, config_size_kib=100, actor="operator")
    eventually(lambda: "100 KiB are the most" in run(*create).stderr)


def test_the_api_server_tells_the_size_of_etcd() -> None:
    etcd_monitor.read(connect(LOCAL))
    store = etcd_monitor.current(LOCAL)
    assert store.size_bytes
    assert store.level is Level.NORMAL
