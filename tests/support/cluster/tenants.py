"""Teams, namespaces and people of a single test, on the running portal."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from allocations.cluster import credentials
from allocations.cluster.client import connect
from deploy.local.runner import Local
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.stage import Person, person_with
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL


def person_of(local: Local, folder: Path, user: User, namespace: str) -> Person:
    """Return the person with a kubeconfig of the form that `connect` returns."""
    token = credentials.mint(connect(LOCAL), user.username, credentials.MAX_TTL_S).token
    file = folder / f"{user.username}.kubeconfig"
    content = credentials.kubeconfig(connect(LOCAL), "", user.username, namespace, {"token": token})
    file.write_text(content, encoding="utf-8")
    return person_with(local.home, file, namespace)


def token_of(user: User) -> Callable[[], str]:
    """Return a function that returns the token of the person's kubeconfig, renewed before it expires."""
    minted: list[credentials.PersonToken] = []

    def token() -> str:
        if not minted or minted[-1].expires_at < clock.now() + timedelta(minutes=10):
            minted.append(credentials.mint(connect(LOCAL), user.username, credentials.MAX_TTL_S))
        return minted[-1].token

    return token


def own_projects(team: Team, number: int, admin: ApiClient) -> list[Project]:
    """Create projects of the team; return them once their namespaces are ready for its members."""
    projects = [tenants.create_project(SYSTEM, team, f"t-{uuid4().hex[:10]}", "A test's own") for _ in range(number)]
    workqueue.enqueue(*(targets.project(LOCAL, project.slug) for project in projects))
    for project in projects:
        wait_for_members(admin, project)
    return projects


def wait_for_members(admin: ApiClient, project: Project) -> None:
    """Return once the project's namespace is ready for its members and their pods."""
    eventually(lambda: admin.find("rolebinding", "gpu-portal-tenant", project.namespace))
    eventually(lambda: admin.find("serviceaccount", "default", project.namespace))


def retry_refused(create: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Call ``create`` until it succeeds; it raises AssertionError if the pod is refused.

    The API server's policies and quotas learn a moment later that slices are held, or free again.
    """
    eventually(lambda: create(*arguments, **options) or True, AssertionError)


def own_namespace(admin: ApiClient, **labels: str) -> str:
    """Create a namespace without the portal; return its name."""
    name = f"old-{uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    admin.created(manifest)
    return name


def gpu_pod(name: str, **metadata: object) -> Object:
    """Return a pod that requests a GPU of a device plugin without the portal."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def queued_job(name: str) -> Object:
    """Return a Job in the project's queue that requests one GPU."""
    pod = gpu_pod(name)["spec"]
    labels = {"kueue.x-k8s.io/queue-name": "gpu"}
    spec = {"suspend": True, "template": {"spec": {**pod, "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}
