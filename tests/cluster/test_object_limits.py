"""A project's object limits, set by an operator, as its members meet them; and the API server's report of etcd's
size.
"""

from pathlib import Path

import pytest

from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.domain.etcd_usage import Level
from allocations.reconcile import etcd_monitor
from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import held
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.manifests import build
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of, queued_job, retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = [pytest.mark.cluster, pytest.mark.own_project]
POD_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}


@pytest.fixture
def tenant(project: Project, member: User, local: Local, tmp_path: Path) -> Person:
    """Return a member of the project, once the member has access."""
    person = person_of(local, tmp_path, member, project.namespace)
    eventually(lambda: person.items("configmaps", ""), AssertionError)
    return person


def hard(admin: ApiClient, namespace: str, name: str = "gpu-portal-objects") -> dict[str, str]:
    """Return the limits that the quota controller enforces."""
    return dict(admin.find("resourcequota", name, namespace).get("status", {}).get("hard") or {})


def test_a_number_that_an_operator_sets_is_in_the_quota_and_binds(
    project: Project, tenant: Person, admin: ApiClient
) -> None:
    structure.change_project(SYSTEM, project, {"object_limits": {"configmaps": 10}})
    eventually(lambda: hard(admin, project.namespace).get("configmaps") == "10")
    answers = [tenant.create(config_map(f"c-{number}")) for number in range(11)]
    assert answers[0].granted
    assert "exceeded quota: gpu-portal-objects" in answers[-1].message
    structure.change_project(SYSTEM, project, {"object_limits": {"configmaps": None}})
    eventually(lambda: tenant.create(config_map("more")).status == 201)


def test_cron_jobs_that_an_admins_role_allows_are_bounded_too(project: Project, admin: ApiClient) -> None:
    structure.change_project(SYSTEM, project, {"object_limits": {"cronjobs": 1}})
    eventually(lambda: hard(admin, project.namespace).get("count/cronjobs.batch") == "1")
    yearly = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": POD_TEMPLATE}}}
    first, second = (
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": yearly}
        for name in ("first", "second")
    )
    admin.created(first, project.namespace)
    assert "exceeded quota: gpu-portal-objects" in admin.create(second, project.namespace).message


def test_a_size_that_an_operator_sets_is_the_most_that_a_config_map_may_have(project: Project, tenant: Person) -> None:
    large = config_map("large", a="x" * 75_000, b="x" * 75_000)
    eventually(lambda: "128 KiB are the most" in tenant.create(large, dry_run=True).message)
    structure.change_project(SYSTEM, project, {"config_size_kib": 200})
    eventually(lambda: tenant.create(large, dry_run=True).status == 201)
    structure.change_project(SYSTEM, project, {"config_size_kib": 100})
    eventually(lambda: "100 KiB are the most" in tenant.create(large, dry_run=True).message)


def test_other_pods_are_bounded_and_those_of_allocations_and_queued_jobs_are_not_counted_with_them(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    structure.change_project(SYSTEM, project, {"object_limits": {"other_pods": 1}})
    eventually(lambda: hard(admin, project.namespace, "gpu-portal-other-pods").get("pods") == "1")
    allocation = held(member, project, "t4/shared")
    retry_refused(tenant.created, pod("own", **{names.ALLOCATION: allocation.name}))
    tenant.created(queued_job("train"))
    [train] = eventually(lambda: tenant.items("pods", "batch.kubernetes.io/job-name=train"))
    assert (train["spec"]["priorityClassName"], train["spec"]["priority"]) == (names.QUEUED_JOB_CLASS, 100)
    first, second = (tenant.create(pod(name)) for name in ("first", "second"))
    assert first.granted
    assert "exceeded quota: gpu-portal-other-pods" in second.message


def pod(name: str, **labels: str) -> Object:
    """Return a pod that satisfies Pod Security `restricted`."""
    return build({"pod": {"labels": labels}}, name)


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_api_server_tells_the_size_of_etcd() -> None:
    etcd_monitor.read(connect(LOCAL))
    store = etcd_monitor.current(LOCAL)
    assert store.size_bytes
    assert store.level is Level.NORMAL
