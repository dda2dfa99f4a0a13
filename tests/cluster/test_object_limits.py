"""A project's object limits, set by an operator, as its members meet them; and the API server's report of etcd's
size.
"""

import json
from pathlib import Path

import pytest

from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.domain.etcd_usage import Level
from allocations.reconcile import etcd_monitor
from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import held
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.manifests import build
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of, queued_job, retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster


@pytest.fixture
def tenant(project: Project, member: User, local: Local, tmp_path: Path) -> Person:
    """Return kubectl as a member of the project, once the member has access."""
    person = person_of(local, tmp_path, member, project.namespace)
    eventually(lambda: person.run("get", "configmaps").returncode == 0)
    return person


def hard(kubectl: Kubectl, namespace: str, name: str = "gpu-portal-objects") -> dict[str, str]:
    """Return the limits that the quota controller enforces."""
    quota = json.loads(kubectl("get", "resourcequota", name, "-n", namespace, "-o", "json"))
    return dict(quota.get("status", {}).get("hard") or {})


def test_a_number_that_an_operator_sets_is_in_the_quota_and_binds(
    project: Project, tenant: Person, kubectl: Kubectl
) -> None:
    structure.configure_project(project, object_limits={"configmaps": 10}, actor="operator")
    eventually(lambda: hard(kubectl, project.namespace).get("configmaps") == "10")
    answers = [tenant.run("create", "configmap", f"c-{number}") for number in range(11)]
    assert answers[0].returncode == 0, answers[0].stderr
    assert "exceeded quota: gpu-portal-objects" in answers[-1].stderr
    structure.configure_project(project, object_limits={"configmaps": None}, actor="operator")
    eventually(lambda: tenant.run("create", "configmap", "more").returncode == 0)


def test_cron_jobs_that_an_admins_role_allows_are_bounded_too(project: Project, kubectl: Kubectl) -> None:
    structure.configure_project(project, object_limits={"cronjobs": 1}, actor="operator")
    eventually(lambda: hard(kubectl, project.namespace).get("count/cronjobs.batch") == "1")
    yearly = ("--image=x", "--schedule=0 0 1 1 *", "-n", project.namespace)
    kubectl("create", "cronjob", "first", *yearly)
    with pytest.raises(AssertionError, match="exceeded quota: gpu-portal-objects"):
        kubectl("create", "cronjob", "second", *yearly)


def test_a_size_that_an_operator_sets_is_the_most_that_a_config_map_may_have(project: Project, tenant: Person) -> None:
    halves = [f"--from-literal={key}={'x' * 75_000}" for key in ("a", "b")]
    create = ("create", "configmap", "large", *halves, "--dry-run=server")
    eventually(lambda: "128 KiB are the most" in tenant.run(*create).stderr)
    structure.configure_project(project, config_size_kib=200, actor="operator")
    eventually(lambda: tenant.run(*create).returncode == 0)
    structure.configure_project(project, config_size_kib=100, actor="operator")
    eventually(lambda: "100 KiB are the most" in tenant.run(*create).stderr)


def test_other_pods_are_bounded_and_those_of_allocations_and_queued_jobs_are_not_counted_with_them(
    project: Project, member: User, tenant: Person, kubectl: Kubectl
) -> None:
    structure.configure_project(project, object_limits={"other_pods": 1}, actor="operator")
    eventually(lambda: hard(kubectl, project.namespace, "gpu-portal-other-pods").get("pods") == "1")
    allocation = held(member, project, "t4/shared")
    retry_refused(tenant.do, "create", "-f", "-", stdin=pod("own", **{names.ALLOCATION: allocation.name}))
    tenant.do("create", "-f", "-", stdin=queued_job("train"))
    of_job = ("get", "pods", "-n", project.namespace, "-l", "batch.kubernetes.io/job-name=train", "-o", "json")
    [train] = eventually(lambda: json.loads(kubectl(*of_job))["items"])
    assert (train["spec"]["priorityClassName"], train["spec"]["priority"]) == (names.QUEUED_JOB_CLASS, 100)
    first, second = (tenant.run("create", "-f", "-", stdin=pod(name)) for name in ("first", "second"))
    assert first.returncode == 0, first.stderr
    assert "exceeded quota: gpu-portal-other-pods" in second.stderr


def pod(name: str, **labels: str) -> str:
    """Return a pod that satisfies Pod Security `restricted`."""
    return json.dumps(build({"pod": {"labels": labels}}, name))


def test_the_api_server_tells_the_size_of_etcd() -> None:
    etcd_monitor.read(connect(LOCAL))
    store = etcd_monitor.current(LOCAL)
    assert store.size_bytes
    assert store.level is Level.NORMAL
