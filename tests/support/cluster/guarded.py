"""A namespace that the guards act in, with a GpuProject of a test's own, and one that counts what pods request."""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deploy.local.home import Home
from quotas.catalog import quantities
from tests.support.cluster.api_client import Answer, ApiClient, Object
from tests.support.cluster.manifests import project
from tests.support.cluster.waiting import eventually

KINDS = ("Namespace", "GpuProject", "RoleBinding", "ServiceAccount", "PriorityClass", "LimitRange")
DEFAULTS = {"cpu": "100m", "memory": "256Mi"}
"""What the portal's LimitRange has containers request that state nothing."""
COUNTED = ("requests.nvidia.com/gpu", "requests.cpu", "requests.memory", "limits.memory")
REQUESTED = re.compile(r"exceeded quota: zero, requested: (?P<amounts>\S+), used: ")


@dataclass(frozen=True)
class Guarded:
    """``hold_class`` is a PriorityClass that allocations of ``spec`` may name."""

    namespace: str
    tenant: ApiClient
    portal: ApiClient
    admin: ApiClient

    @property
    def hold_class(self) -> str:
        return f"gpu-portal-hold-{self.namespace}"

    def write(self, spec: Mapping[str, Any]) -> None:
        """Write the GpuProject, and return once the guards read it: it has an allocation that tells its revision."""
        revision = f"revision-{secrets.token_hex(3)}"
        mark = {"mode": "device-plugin", "resource": "nvidia.com/gpu", "count": 1, "priorityClassName": self.hold_class}
        allocations = {**spec.get("allocations", {}), revision: mark}
        manifest = next(iter(project(("GpuProject",), ns=self.namespace, level="", person="")))
        self.portal.apply({**manifest, "spec": {**spec, "allocations": allocations}}, self.namespace, "gpu-portal")
        sentinel = pod([container("main")], labels={"gpu-portal.io/allocation": revision})
        eventually(lambda: self.dry_run(sentinel).status == 201)

    def dry_run(self, manifest: Object) -> Answer:
        """Have the tenant create an object without storing it."""
        return self.tenant.create(manifest, self.namespace, dry_run=True)

    def count(self, spec: Mapping[str, Any]) -> dict[str, float] | None:
        """Return what the API server's own quota counts of a pod's spec, by key of COUNTED; None for a pod that it
        refuses otherwise. Containers without a limit of memory count with what they request.
        """
        answer = self.admin.create(pod(**_with_limits(spec)), f"{self.namespace}-count", dry_run=True)
        match = REQUESTED.search(answer.message)
        if match is None:
            return None
        amounts = dict(each.split("=") for each in match["amounts"].split(","))
        return {key: float(quantities.value(amounts.get(key, "0"))) for key in COUNTED}


def _with_limits(spec: Mapping[str, Any]) -> dict[str, Any]:
    def bounded(one: Object) -> Object:
        resources = one["resources"]
        least = resources.get("requests", {}).get("memory", DEFAULTS["memory"])
        return {**one, "resources": {**resources, "limits": {"memory": least, **resources.get("limits", {})}}}

    if "memory" in spec.get("resources", {}).get("limits", {}):
        return dict(spec)
    parts = {key: [bounded(one) for one in spec[key]] for key in ("containers", "initContainers") if spec.get(key)}
    return {**spec, **parts}


def container(name: str, resources: Mapping[str, Any] | None = None, **fields: object) -> Object:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"name": name, "image": "busybox", "securityContext": safe, "resources": resources or {}, **fields}


def pod(containers: list[Object], labels: Mapping[str, str] | None = None, **spec: object) -> Object:
    safe = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    metadata = {"name": "shape", "labels": dict(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "securityContext": safe, "containers": containers, **spec},
    }


@contextmanager
def guarded(home: Home) -> Iterator[Guarded]:
    """Create both namespaces, and delete them afterwards."""
    namespace = f"guarded-{secrets.token_hex(3)}"
    person = f"person-{namespace}"
    admin = ApiClient(home)
    token = admin.token("portal", "gpu-portal")
    portal = ApiClient(home, lambda: token)
    count = f"{namespace}-count"
    limits = {"spec": {"limits": [{"type": "Container", "defaultRequest": DEFAULTS}]}}
    try:
        for manifest in project(KINDS, ns=namespace, level="restricted", person=person):
            body = {**manifest, **limits} if manifest["kind"] == "LimitRange" else manifest
            portal.apply(body, namespace, "gpu-portal")
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": count}})
        admin.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, **limits}, count)
        zero = {"spec": {"hard": dict.fromkeys(COUNTED, "0")}}
        admin.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "zero"}, **zero}, count)
        eventually(lambda: admin.get("resourcequota", "zero", count).get("status", {}).get("hard"))
        tenant_token = admin.token(person, "gpu-portal-people")
        yield Guarded(namespace, ApiClient(home, lambda: tenant_token), portal, admin)
    finally:
        for name in (namespace, count):
            admin.delete("namespace", name)
        for account in (person, f"{person}-viewer"):
            portal.delete("serviceaccount", account, "gpu-portal-people")
        portal.delete("priorityclass", f"gpu-portal-hold-{namespace}")
