"""Real priority levels of API Priority and Fairness, by headers of the API server's answers and by its metrics."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
import urllib3

from deploy.local.home import Home
from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.tenants import own_projects, token_of
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
LEVEL = "X-Kubernetes-PF-PriorityLevel-UID"
CONFIG_MAPS = 60
"""6 MB: Linux buffers up to 4 MiB of what a connection does not read (net.ipv4.tcp_wmem)."""
WATCHES = 12
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/any"
PATHS = ("/version", "/openapi/v3", "/apis", "/api/v1/namespaces/kube-system/pods", REVIEW, LEASE)
"""What any account may read, and what is refused: flow control comes before permissions."""


def levels(home: Home, token: str, *paths: str) -> set[str]:
    """Return the UIDs of the levels that a token's requests have."""
    pool = urllib3.PoolManager(ca_certs=str(home.certs / "ca.crt"), retries=False, timeout=30)
    headers = {"Authorization": f"Bearer {token}"}
    return {pool.request("GET", f"{home.apiserver}{path}", headers=headers).headers[LEVEL] for path in paths}


def uid(admin: ApiClient, level: str) -> str:
    return str(admin.get("prioritylevelconfiguration", level)["metadata"]["uid"])


@contextmanager
def unread_watches(home: Home, token: str, path: str) -> Iterator[None]:
    """Ask for the objects of a collection and their changes on connections of which nothing is read."""
    server = urlsplit(home.apiserver)
    trust = ssl.create_default_context(cafile=str(home.certs / "ca.crt"))
    request = f"GET {path}?watch=1 HTTP/1.1\r\nHost: {server.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(WATCHES):
            plain = socket.socket()
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.connect((server.hostname or "", server.port or 443))
            connection = stack.enter_context(trust.wrap_socket(plain, server_hostname=server.hostname))
            connection.sendall(request.encode())
        yield


def waiting(admin: ApiClient, level: str) -> float:
    """Return how many requests wait for a seat of the level."""
    lines = admin.text("/metrics").splitlines()
    name = "apiserver_flowcontrol_current_inqueue_requests{"
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith(name) and f'priority_level="{level}"' in line
    )


@pytest.fixture
def others(admin: ApiClient) -> Iterator[Project]:
    """Yield a project of another team."""
    [project] = own_projects(Team.objects.get(slug="language"), 1, admin)
    yield project
    structure.archive_project(SYSTEM, project)


def test_people_have_the_tenants_level(local: Local, member: User, admin: ApiClient) -> None:
    assert levels(local.home, token_of(member)(), *PATHS) == {uid(admin, "gpu-portal-tenants")}


def test_what_people_ask_in_their_namespace_has_the_level_of_their_team(
    local: Local, member: User, project: Project, admin: ApiClient
) -> None:
    pods = f"/api/v1/namespaces/{project.namespace}/pods"
    level = f"gpu-portal-team-{project.team.slug}"
    token = token_of(member)()
    eventually(lambda: levels(local.home, token, pods, f"{pods}/none") == {uid(admin, level)})


@pytest.mark.own_project
def test_watches_that_nobody_reads_keep_no_other_team_waiting(
    local: Local, member: User, project: Project, others: Project, admin: ApiClient
) -> None:
    """More of them than the level of their team has seats, of objects larger than what connections buffer."""
    for number in range(CONFIG_MAPS):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"large-{number}"}}
        admin.created({**manifest, "data": {"text": "x" * 100_000}}, project.namespace)
    other = User.objects.get(username="language-member")
    pods = f"/api/v1/namespaces/{others.namespace}/pods"
    large = f"/api/v1/namespaces/{project.namespace}/configmaps"
    own_level = f"gpu-portal-team-{project.team.slug}"
    eventually(lambda: levels(local.home, token_of(other)(), pods) == {uid(admin, "gpu-portal-team-language")})
    eventually(lambda: levels(local.home, token_of(member)(), f"{large}/none") == {uid(admin, own_level)})
    with unread_watches(local.home, token_of(member)(), large):
        eventually(lambda: waiting(admin, own_level) > 0)
        assert ApiClient(local.home, token_of(other)).call("GET", pods).status == 200


def test_the_service_account_of_a_project_has_the_tenants_level_too(
    local: Local, project: Project, admin: ApiClient
) -> None:
    token, tenants = admin.token("default", project.namespace), uid(admin, "gpu-portal-tenants")
    eventually(lambda: levels(local.home, token, *PATHS) == {tenants})


def test_the_portal_and_other_operators_keep_kubernetes_own_level(local: Local, admin: ApiClient) -> None:
    portal, other = local.home.portal_token.read_text().strip(), admin.token("default", "default")
    for token in (portal, other):
        assert levels(local.home, token, *PATHS) == {uid(admin, "workload-low")}
