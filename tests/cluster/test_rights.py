"""Everything tenants may write is in the tables of tests/cluster/rights, by the running API server's OpenAPI."""

from pathlib import Path

import pytest
from kubernetes.utils.quantity import parse_quantity

from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from portal.tenants.object_limits import OBJECT_KINDS
from tests.cluster.rights import table
from tests.cluster.rights.comparison import compare, compare_rights
from tests.cluster.rights.schema import Documents, Right, bodies, rights
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.manifests import build
from tests.support.cluster.tenants import person_of, token_of
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
ROLE = "gpu-portal:tenant"
FEW = 5
MARK = {"example.com/made-by": "test-rights"}
POD_TEMPLATE = {"metadata": {"labels": MARK}, "spec": build({}, "x")["spec"]}
NO_POD = {"replicas": 0, "selector": {"matchLabels": MARK}, "template": POD_TEMPLATE}
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
WAITING = {"suspend": True, "template": {"spec": {**POD_TEMPLATE["spec"], "restartPolicy": "Never"}}}
KINDS: dict[str, tuple[str, str, Object]] = {
    "services": ("v1", "Service", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
    "configmaps": ("v1", "ConfigMap", {}),
    "secrets": ("v1", "Secret", {}),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", {"spec": STORAGE}),
    "count/deployments.apps": ("apps/v1", "Deployment", {"spec": NO_POD}),
    "count/statefulsets.apps": ("apps/v1", "StatefulSet", {"spec": NO_POD}),
    "count/jobs.batch": ("batch/v1", "Job", {"spec": WAITING}),
}
"""Key in the quota gpu-portal-objects → a kind, and what an object of it needs so that it creates no pod."""


@pytest.fixture(scope="module")
def granted(admin: ApiClient) -> set[Right]:
    return rights(admin.get("clusterrole", ROLE)["rules"])


@pytest.fixture(scope="module")
def documents(admin: ApiClient, granted: set[Right]) -> Documents:
    """Return the API server's OpenAPI documents of the groups in the role."""
    listed = admin.call("GET", "/openapi/v3").body["paths"]
    groups = {f"apis/{right.group}/" if right.group else "api/" for right in granted}
    chosen = {path: place for path, place in listed.items() if path.startswith(tuple(groups))}
    return {path: admin.call("GET", place["serverRelativeURL"]).body for path, place in chosen.items()}


@pytest.fixture
def tenant(local: Local, member: User, project: Project) -> ApiClient:
    return ApiClient(local.home, token_of(member))


def test_every_right_of_tenants_is_in_the_table(granted: set[Right]) -> None:
    assert compare_rights(granted, table.rights()) == []


def test_every_field_that_tenants_may_write_is_in_the_table(documents: Documents, granted: set[Right]) -> None:
    written = bodies(documents, granted)
    assert {"Pod", "Job", "Service", "Scale", "DeleteOptions", "Query"} <= {body.name for body in written}
    assert compare(written, table.fields()).sentences() == []


def test_what_the_api_server_keeps_for_itself_is_not_taken_from_a_member(project: Project, tenant: ApiClient) -> None:
    pod = build({"pod": {}}, "mine")
    ours = {
        "uid": "11111111-1111-1111-1111-111111111111",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 86400,
        "generation": 77,
        "selfLink": "/mine",
    }
    pod["metadata"] |= ours
    pod["status"] = {"phase": "Succeeded"}
    answer = tenant.call("POST", f"/api/v1/namespaces/{project.namespace}/pods", pod, {"dryRun": "All"})
    assert answer.status == 201, answer.message
    assert {key for key, value in ours.items() if answer.body["metadata"].get(key) == value} == set()
    assert "deletionTimestamp" not in answer.body["metadata"]
    assert answer.body["status"]["phase"] == "Pending"


def test_a_member_cannot_delete_what_the_api_server_cannot_read(
    local: Local, project: Project, member: User, tmp_path: Path
) -> None:
    person = person_of(local, tmp_path, member, project.namespace)
    assert person.run("auth", "can-i", "delete", "configmaps").stdout.strip() == "yes"
    assert person.run("auth", "can-i", "unsafe-delete-ignore-read-errors", "configmaps").stdout.strip() == "no"


@pytest.fixture
def room(project: Project, admin: ApiClient) -> dict[str, int]:
    """Return how many objects of each kind fit into the project's quota, which is made small for the test."""
    most = {name: max(FEW, kind.minimum) for name, kind in OBJECT_KINDS.items() if kind.quota_key in KINDS}
    # Kubernetes makes it in each namespace, at its own time.
    eventually(lambda: admin.find("configmap", "kube-root-ca.crt", project.namespace))
    structure.change_project(SYSTEM, project, {"object_limits": most})

    def counted() -> dict[str, int]:
        status = admin.get("resourcequota", "gpu-portal-objects", project.namespace)["status"]
        assert {name: status["hard"][OBJECT_KINDS[name].quota_key] for name in most} == {
            name: str(number) for name, number in most.items()
        }
        return {key: int(parse_quantity(status["hard"][key]) - parse_quantity(status["used"][key])) for key in KINDS}

    return eventually(counted, AssertionError, KeyError)


@pytest.mark.own_project
@pytest.mark.parametrize("key", KINDS)
def test_a_project_has_no_more_objects_of_a_kind_than_its_quota_says(
    key: str, room: dict[str, int], project: Project, tenant: ApiClient
) -> None:
    version, kind, _ = KINDS[key]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{base}/namespaces/{project.namespace}/{kind.lower()}s"
    try:
        answers = [tenant.call("POST", path, sample(key, number)) for number in range(room[key] + 1)]
    finally:
        chosen = {"labelSelector": "example.com/made-by=test-rights", "propagationPolicy": "Background"}
        tenant.call("DELETE", path, query=chosen)
    assert [answer.message for answer in answers[:-1] if answer.status != 201] == []
    assert "exceeded quota: gpu-portal-objects" in answers[-1].message


def sample(key: str, number: int) -> Object:
    version, kind, body = KINDS[key]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": f"sample-{number}", "labels": MARK}, **body}
