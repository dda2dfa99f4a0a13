"""Priority levels of API Priority and Fairness on the real control plane, by headers of the API server's answers."""

import pytest
import urllib3

from deploy.local.home import Home
from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.tenants import token_of
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
LEVEL = "X-Kubernetes-PF-PriorityLevel-UID"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/any"
PATHS = ("/version", "/openapi/v3", "/apis", "/api/v1/namespaces/kube-system/pods", REVIEW, LEASE)
"""What any account may read, and what is refused: flow control comes before permissions."""


def levels(home: Home, token: str, *paths: str) -> set[str]:
    """Return the UIDs of the levels that a token's requests have."""
    pool = urllib3.PoolManager(ca_certs=str(home.certs / "ca.crt"), retries=False, timeout=30)
    headers = {"Authorization": f"Bearer {token}"}
    return {pool.request("GET", f"{home.apiserver}{path}", headers=headers).headers[LEVEL] for path in paths}


def uid(kubectl: Kubectl, level: str) -> str:
    return kubectl("get", "prioritylevelconfiguration", level, "-o", "jsonpath={.metadata.uid}")


def default_token(kubectl: Kubectl, namespace: str) -> str:
    return kubectl("create", "token", "default", "-n", namespace).strip()


def test_people_have_the_tenants_level(local: Local, member: User, kubectl: Kubectl) -> None:
    assert levels(local.home, token_of(member)(), *PATHS) == {uid(kubectl, "gpu-portal-tenants")}


def test_the_service_account_of_a_project_has_the_tenants_level_too(
    local: Local, project: Project, kubectl: Kubectl
) -> None:
    token, tenants = default_token(kubectl, project.namespace), uid(kubectl, "gpu-portal-tenants")
    eventually(lambda: levels(local.home, token, *PATHS) == {tenants})


def test_the_portal_and_other_operators_keep_kubernetes_own_level(local: Local, kubectl: Kubectl) -> None:
    portal, other = local.home.portal_token.read_text().strip(), default_token(kubectl, "default")
    for token in (portal, other):
        assert levels(local.home, token, *PATHS) == {uid(kubectl, "workload-low")}
