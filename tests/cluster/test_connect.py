"""Answers of `connect`: a personal kubeconfig valid for an hour, and a pod that runs on the slices unchanged."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from allocations.models import Allocation
from portal.clusters.models import Cluster
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import held, request_slices
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.connected import Tenant, apply_pod, running
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.tenants import retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster


@pytest.fixture
def api(member: User) -> APIClient:
    return client(member)


@pytest.fixture(scope="module")
def row(member: User, lent_projects: LentProjects) -> Iterator[Allocation]:
    """Yield a hold of which tests only ask how to connect."""
    with lent_projects.lent() as project:
        yield held(member, project, "l40s/whole")


def connect(api: APIClient, row: Allocation) -> dict[str, Any]:
    answer = api.get(f"/api/v1/allocations/{row.pk}/connect")
    assert answer.status_code == 200, answer.json()
    assert answer["Cache-Control"] == "no-store"
    connection: dict[str, Any] = answer.json()
    return connection


def test_the_pod_runs_as_it_is_on_the_very_devices(
    api: APIClient, member: User, project: Project, tenant: Callable[[dict[str, Any]], Tenant]
) -> None:
    row = held(member, project, "h100/whole", 2)
    connection = connect(api, row)
    assert connection["label"] == {"key": "gpu-portal.io/allocation", "value": row.name}
    use = tenant(connection)
    retry_refused(apply_pod, use, connection["pod_yaml"])
    pod = running(use, yaml.safe_load(connection["pod_yaml"])["metadata"]["name"])
    devices = api.get(f"/api/v1/allocations/{row.pk}").json()["devices"]
    claim = use.person.get("resourceclaim", row.name)
    results = claim["status"]["allocation"]["devices"]["results"]
    assert [(r["pool"], r["device"]) for r in results] == [(d["node"], d["device"]) for d in devices]
    assert pod["spec"]["nodeName"] == devices[0]["node"]
    assert pod["metadata"]["uid"] in [user["uid"] for user in claim["status"]["reservedFor"]]


@pytest.mark.parametrize(
    ("offering", "count", "resource"),
    [("l40s/whole", 1, "nvidia.com/gpu"), ("t4/shared", 2, "nvidia.com/gpu.shared")],
)
def test_the_pod_runs_as_it_is_by_device_plugin(
    offering: str,
    count: int,
    resource: str,
    api: APIClient,
    member: User,
    project: Project,
    tenant: Callable[[dict[str, Any]], Tenant],
) -> None:
    row = held(member, project, offering, count)
    connection = connect(api, row)
    use = tenant(connection)
    retry_refused(apply_pod, use, connection["pod_yaml"])
    pod = running(use, yaml.safe_load(connection["pod_yaml"])["metadata"]["name"])
    assert pod["spec"]["containers"][0]["resources"]["limits"][resource] == "1"
    assert pod["spec"]["nodeName"].startswith(f"{offering.partition('/')[0]}-")


def test_the_kubeconfig_is_the_persons_own_and_reaches_the_project_only(
    api: APIClient, member: User, row: Allocation, tenant: Callable[[dict[str, Any]], Tenant]
) -> None:
    connection = connect(api, row)
    use = tenant(connection)
    username = json.loads(use("auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]["username"]
    assert username == f"system:serviceaccount:gpu-portal-people:person-{member.username}"
    assert use("get", "pods").returncode == 0
    assert use("get", "pods", "-n", "kube-system").returncode != 0
    assert use("get", "secrets", "-n", "gpu-portal-people").returncode != 0


@pytest.mark.parametrize(("asked_s", "given_s"), [(60, 600), (900, 900), (86_400, 3600)])
def test_a_token_lives_from_ten_minutes_to_an_hour(
    api: APIClient, row: Allocation, settings: Any, asked_s: int, given_s: int
) -> None:
    settings.KUBECONFIG_TTL_S = asked_s
    before = clock.now()
    expires_at = datetime.fromisoformat(connect(api, row)["expires_at"])
    assert abs(expires_at - before - timedelta(seconds=given_s)) < timedelta(seconds=30)


@pytest.mark.parametrize(("left_s", "given_s"), [(60, 600), (1200, 1200)])
def test_a_token_of_the_cluster_outlives_that_of_the_portal_by_ten_minutes_at_most(
    member: User, row: Allocation, left_s: int, given_s: int
) -> None:
    _, secret = tenants.issue_token(SYSTEM, member, "short", ["read", "request"], timedelta(seconds=left_s))
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    before = clock.now()
    expires_at = datetime.fromisoformat(connect(api, row)["expires_at"])
    assert abs(expires_at - before - timedelta(seconds=given_s)) < timedelta(seconds=30)


@contextmanager
def _reached_at(cluster: str, server: str) -> Iterator[None]:
    rows = Cluster.objects.filter(pk=cluster)
    before = rows.get().server
    rows.update(server=server)
    try:
        yield
    finally:
        rows.update(server=before)


def test_people_may_be_given_another_address_of_the_cluster(api: APIClient, row: Allocation) -> None:
    with _reached_at(row.project.cluster_id, "https://kubernetes.example.org"):
        connection = connect(api, row)
    cluster = yaml.safe_load(connection["kubeconfig"])["clusters"][0]["cluster"]
    assert cluster["server"] == "https://kubernetes.example.org"


def test_an_operator_who_is_no_member_uses_credentials_of_their_own(row: Allocation) -> None:
    answer = client(User.objects.get(username="operator")).get(f"/api/v1/allocations/{row.pk}/connect")
    assert answer.status_code == 403
    assert "your own credentials" in answer.json()["hint"]


def test_the_place_in_the_queue_is_kueues_own(api: APIClient, member: User, project: Project, admin: ApiClient) -> None:
    limit = next(
        row["mine"]["limit"]
        for row in api.get("/api/v1/offerings", {"project": project.slug}).json()["results"]
        if row["id"] == "a100/mig-3g.40gb"
    )
    held(member, project, "a100/mig-3g.40gb", limit)
    waiting = [
        request_slices(member, project, "a100/mig-3g.40gb", limit, priority=priority)
        for priority in ("batch", "normal")
    ]

    def places() -> list[object]:
        return [api.get(f"/api/v1/allocations/{row.pk}").json()["queue"] for row in waiting]

    def pending() -> list[str]:
        path = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/team-vision/pendingworkloads"
        return [item["metadata"]["name"] for item in admin.items(path)]

    leases = [f"{row.name}-lease" for row in waiting]
    eventually(lambda: set(leases) <= set(pending()), AssertionError)

    def agree() -> bool:
        queue_names = pending()
        return places() == [{"position": queue_names.index(lease) + 1, "of": len(queue_names)} for lease in leases]

    eventually(agree, ValueError, AssertionError)
