"""The objects that the hostile member writes, and the calls that write them. Pure."""

import base64
from random import Random

from tests.cluster.hostile_member.calls import APPLY_PATCH, MERGE_PATCH, AttackContext, Call, Credentials, Object
from tests.cluster.random_tenant.manifests import ALLOCATION
from tests.support.cluster.manifests import PAUSE, SAFE, SAFE_POD, merge

PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
}
"""The kinds that the tenant role may write."""
TINY = {"cpu": "1m", "memory": "1Mi"}
FOUR_BYTES = "\N{SQUARED OK}"
"""A character of four bytes in UTF-8."""


def label(rng: Random, context: AttackContext) -> dict[str, str]:
    return {ALLOCATION: rng.choice(context.allocations)}


def spec(resources: Object, text: str = "") -> Object:
    """Return a pod's spec that satisfies Pod Security `restricted`."""
    container: Object = {"name": "main", "image": PAUSE, "securityContext": SAFE, "resources": resources}
    if text:
        container["env"] = [{"name": "TEXT", "value": text}]
    return {"securityContext": SAFE_POD, "terminationGracePeriodSeconds": 2, "containers": [container]}


def tiny(text: str = "") -> Object:
    """Return a pod's spec with minimal requests."""
    return spec({"requests": TINY}, text)


def repeated() -> list[Object]:
    """Return specs of pods of which a node would repeat much in the status: a long image, and many readiness gates."""
    spec = tiny()
    gates = [{"conditionType": f"example.com/gate-{number}"} for number in range(200)]
    return [
        merge(spec, {"containers": [{**spec["containers"][0], "image": "x" * 20_000}]}),
        {**spec, "readinessGates": gates},
    ]


def replicated(name: str, replicas: int, spec: Object, labels: Object | None = None) -> Object:
    template = {"metadata": {"labels": {"app": name, **(labels or {})}}, "spec": spec}
    return {"spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}}


def running(kind: str, name: str, spec: Object, replicas: int = 1) -> Object:
    """Return a pod, a suspended Job, or a Deployment or StatefulSet."""
    if kind == "Pod":
        return {"spec": spec}
    if kind == "Job":
        return {"spec": {"suspend": True, "template": {"spec": {**spec, "restartPolicy": "Never"}}}}
    return replicated(name, replicas, spec)


def filler(size: int, mark: str) -> str:
    """Return ``mark`` repeated up to ``size`` bytes in UTF-8."""
    return mark * (size // len(mark.encode()))


def data(kind: str, size: int, mark: str = "x") -> Object:
    """Return a ConfigMap or a Secret of ``size`` bytes as the API server stores them."""
    if kind == "ConfigMap":
        return {"data": {"text": filler(size, mark)}}
    return {"data": {"text": base64.b64encode(filler(size * 3 // 4, mark).encode()).decode()}}


def plain(kind: str, name: str) -> Object:
    """Return a Service or a PersistentVolumeClaim."""
    if kind == "Service":
        return {"spec": {"selector": {"app": name or "none"}, "ports": [{"port": 80}]}}
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def annotated(kind: str, name: str, text: str) -> Object:
    return merge(plain(kind, name), {"metadata": {"annotations": {"example.com/text": text}}})


def small(kind: str, name: str) -> Object:
    """Return the smallest valid object of the kind."""
    if kind in ("ConfigMap", "Secret"):
        return data(kind, 4)
    if kind in ("Service", "PersistentVolumeClaim"):
        return plain(kind, name)
    return running(kind, name, tiny())


def _api_version(kind: str) -> str:
    return {"Job": "batch/v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1"}.get(kind, "v1")


def _object(kind: str, context: AttackContext, name: str, body: Object, labels: Object | None = None) -> Object:
    own = {"name": name, "namespace": context.namespace, **({"labels": labels} if labels else {})}
    return merge({"apiVersion": _api_version(kind), "kind": kind, "metadata": own}, body)


def _path(kind: str, context: AttackContext, name: str = "") -> str:
    path = PATHS[kind].format(context.namespace)
    return f"{path}/{name}" if name else path


def create(
    kind: str, context: AttackContext, name: str, body: Object, labels: Object | None = None, *, must_fail: bool = False
) -> Call:
    thing = _object(kind, context, name, body, labels)
    return Call(Credentials.KUBECONFIG, "POST", _path(kind, context), thing, must_fail=must_fail)


def apply(kind: str, context: AttackContext, name: str, body: Object) -> Call:
    """Return a server-side apply, which creates or changes the object."""
    query = {"fieldManager": "hostile", "force": "true"}
    thing = _object(kind, context, name, body)
    return Call(Credentials.KUBECONFIG, "PATCH", _path(kind, context, name), thing, query, APPLY_PATCH)


def patch(kind: str, context: AttackContext, name: str, body: Object, *, must_fail: bool = False) -> Call:
    path = _path(kind, context, name)
    return Call(Credentials.KUBECONFIG, "PATCH", path, body, content_type=MERGE_PATCH, must_fail=must_fail)


def delete(kind: str, context: AttackContext, name: str, **options: object) -> Call:
    return Call(Credentials.KUBECONFIG, "DELETE", _path(kind, context, name), dict(options))


def delete_all(kind: str, context: AttackContext, selector: str, **options: object) -> Call:
    query = {"labelSelector": selector}
    return Call(Credentials.KUBECONFIG, "DELETE", _path(kind, context), dict(options), query)
