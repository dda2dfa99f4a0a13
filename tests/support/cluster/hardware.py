"""Fixtures for tests of the simulated hardware: its commands, and pods and claims without the portal."""

import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.local.fleet import spec, state
from deploy.local.fleet.api import Api
from quotas.catalog.models import Node
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually

NAMESPACE = "fleet-test"
Object = dict[str, Any]
Apply = Callable[..., None]
Command = Callable[..., None]
Read = Callable[..., Any]
Switch = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def namespace(admin: ApiClient) -> Iterator[str]:
    """Create a namespace that is no project of the portal, so that only Kubernetes decides in it."""
    admin.created({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: admin.find("serviceaccount", "default", NAMESPACE))
    yield NAMESPACE
    admin.delete("namespace", NAMESPACE)
    eventually(lambda: not admin.find("namespace", NAMESPACE), within_s=180)


@pytest.fixture
def apply(admin: ApiClient, namespace: str) -> Iterator[Apply]:
    """Return a function that creates objects; they are deleted after the test."""
    created: list[tuple[str, str]] = []

    def apply(*objects: Object) -> None:
        for one in objects:
            admin.apply(one, namespace)
            created.append((one["kind"], one["metadata"]["name"]))

    yield apply
    for kind, name in created:
        admin.delete(kind, name, namespace)
    eventually(lambda: not any(admin.find(kind, name, namespace) for kind, name in created), within_s=180)


@pytest.fixture(scope="session")
def fleet(kubeconfig: Path) -> Command:
    """Return a function that runs the fleet's command line."""

    def fleet(*arguments: str) -> None:
        command = [sys.executable, "-m", "deploy.local.fleet", "--kubeconfig", str(kubeconfig), *arguments]
        subprocess.run(command, check=True, timeout=30)

    return fleet


@pytest.fixture(scope="session")
def read(admin: ApiClient) -> Read:
    """Return a function that reads one object, or a list of a kind: its name, ``-n`` and ``-l`` as for kubectl."""

    def read(kind: str, *arguments: str) -> Object:
        name = arguments[0] if len(arguments) % 2 else ""
        options = arguments[len(arguments) % 2 :]
        chosen = dict(zip(options[::2], options[1::2], strict=True))
        namespace = chosen.get("-n", "")
        return (
            admin.get(kind, name, namespace)
            if name
            else {"items": admin.objects(kind, namespace, labels=chosen.get("-l", ""))}
        )

    return read


@pytest.fixture(scope="module")
def one_more(kubeconfig: Path, fleet: Command, read: Read) -> Iterator[Switch]:
    """Yield a function that adds nodes for the tests of a module."""
    with adding_nodes(kubeconfig, fleet, read) as switch:
        yield switch


@contextmanager
def adding_nodes(kubeconfig: Path, fleet: Command, read: Read) -> Iterator[Switch]:
    """Yield a function that adds one node of each kind to those there are, and returns their names; remove them at the
    end.

    Waits until they are gone, since a later node of the same name would otherwise keep the old one's MIG layout.
    """
    before, _ = state.read(Api(kubeconfig))
    built_in = {kind.name: kind.nodes for kind in spec.load(spec.FLEET_FILE).kinds}
    extra: dict[str, int] = {}
    added: set[str] = set()

    def one_more(*kinds: str) -> dict[str, str]:
        counts = {kind: before.extra.get(kind, 0) + 1 for kind in kinds}
        extra.update(counts)
        fleet(*(f"--extra={kind}={count}" for kind, count in counts.items()))
        names = {kind: f"{kind}-{built_in[kind] + count - 1}" for kind, count in counts.items()}
        added.update(names.values())
        eventually(lambda: added <= {n["metadata"]["name"] for n in read("nodes")["items"] if ready(n)}, within_s=90)
        return names

    yield one_more
    if extra:
        fleet(*(f"--extra={kind}={count - 1}" for kind, count in extra.items()))
        eventually(lambda: are_gone(added, read), within_s=90)


def are_gone(names: Collection[str], read: Read) -> bool:
    """Return whether neither the cluster has these nodes nor the portal's catalog."""
    found = {node["metadata"]["name"] for node in read("nodes")["items"]}
    return found.isdisjoint(names) and not Node.objects.filter(name__in=names, present=True).exists()


def claim(name: str, device_class: str, count: int = 1, *selectors: str, **exactly: Any) -> Object:
    request: Object = {"deviceClassName": device_class, "count": count, **exactly}
    if selectors:
        request["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "slice-0", "exactly": request}]}},
    }


def pod(name: str, resources: Object, **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [{"name": "main", "image": "pause:3.10", "resources": resources}],
            **fields,
        },
    }


def gpu_pod(name: str, resource: str, count: int, node: str) -> Object:
    """Return a pod that requests devices of the device plugin on one node."""
    return pod(name, {"limits": {resource: str(count)}}, nodeSelector={"kubernetes.io/hostname": node})


def claiming_pod(name: str, **fields: Any) -> Object:
    return pod(
        name, {"claims": [{"name": "gpu"}]}, resourceClaims=[{"name": "gpu", "resourceClaimName": name}], **fields
    )


def job(name: str, **annotations: str) -> Object:
    template = pod(name, {}, restartPolicy="Never")
    metadata = {"annotations": {f"gpu-portal.io/{key.replace('_', '-')}": v for key, v in annotations.items()}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": template["spec"]}},
    }


def running(observed: Object) -> bool:
    return bool(observed["status"]["phase"] == "Running")


def unschedulable(observed: Object) -> bool:
    """Return whether the scheduler has tried the pod and found no node."""
    conditions = observed["status"].get("conditions", [])
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


def ready(observed: Object) -> bool:
    conditions = observed["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def results(observed: Object) -> list[Object]:
    """Return the devices of a claim from the scheduler's allocation."""
    found: list[Object] = observed["status"].get("allocation", {}).get("devices", {}).get("results", [])
    return found


def devices(observed: Object) -> list[tuple[str, str]]:
    return [(result["pool"], result["device"]) for result in results(observed)]
