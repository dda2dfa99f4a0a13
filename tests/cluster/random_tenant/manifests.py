"""Random pods, Jobs, Deployments and StatefulSets, most of them plausible for a well-meaning tenant."""

from random import Random

from tests.support.cluster.api_client import Object
from tests.support.cluster.manifests import L40S, PAUSE, QUEUE, SAFE, SAFE_POD

ALLOCATION = "gpu-portal.io/allocation"
RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")
UNUSUAL_RESOURCES = (
    "gpu-portal.io/gpus",
    "gpu-portal.io/compute-slices",
    "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
)
WORK: tuple[dict[str, str], ...] = (
    {},
    {"cpu": "4"},
    {"cpu": "10", "memory": "40Gi"},
    {"cpu": "40"},
    {"cpu": "1m", "memory": "20Gi"},
    {"memory": "200Gi"},
)
"""Requests of CPU and memory: of most pods none, of others less or more than goes with a GPU."""
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def pod(rng: Random, namespace: str, name: str, labels: Object) -> Object:
    amounts = {} if rng.random() < 0.4 else gpus(rng)
    return _named("v1", "Pod", namespace, name, template(rng, labels, amounts))


def job(rng: Random, namespace: str, name: str, labels: Object) -> Object:
    """Return a Job: mostly queued, else with the allocation's label (``labels``), sometimes with both or neither."""
    kind = rng.choices(["queued", "allocation", "neither", "both"], [60, 28, 8, 4])[0]
    is_queued = kind in ("queued", "both")
    metadata: Object = {"labels": {QUEUE: "gpu"}} if is_queued else {}
    if rng.random() < 0.1:
        metadata["finalizers"] = ["example.com/keep"]
    amounts = gpus(rng) if is_queued or rng.random() < 0.5 else {}
    pods = template(rng, labels if kind in ("allocation", "both") else {}, amounts)
    pods["spec"]["restartPolicy"] = "Never"
    if is_queued and "nvidia.com/gpu" in amounts and rng.random() < 0.8:
        pods["spec"]["nodeSelector"] = dict(L40S)
    if is_queued and rng.random() < 0.1:  # Kueue admits it, and no node takes its pods
        pods["spec"]["nodeSelector"] = {"example.com/room": "none"}
    parallelism = rng.choice([1, 1, 2, 3, 4, 8])
    spec: Object = {
        "parallelism": parallelism,
        "completions": rng.choice([parallelism, parallelism, 1, parallelism + 2, None]),
        "completionMode": rng.choice(["NonIndexed", "Indexed"]),
        "backoffLimit": rng.choice([0, 2, 6, 50]),
        "podReplacementPolicy": rng.choice(["TerminatingOrFailed", "Failed", None]),
        "activeDeadlineSeconds": rng.choice([None, None, None, 4]),
        "ttlSecondsAfterFinished": rng.choice([None, None, 3]),
        "suspend": rng.choice([None, None, True, False]),
        "template": pods,
    }
    kept = {key: value for key, value in spec.items() if value is not None}
    return _named("batch/v1", "Job", namespace, name, {"metadata": metadata, "spec": kept})


def replicated(rng: Random, kind: str, namespace: str, name: str, labels: Object) -> Object:
    """Return a Deployment or a StatefulSet."""
    chosen = {"app": name}
    amounts = {} if rng.random() < 0.5 else gpus(rng)
    spec: Object = {
        "replicas": rng.randint(1, 4),
        "selector": {"matchLabels": chosen},
        "template": template(rng, {**labels, **chosen}, amounts),
    }
    # On a real node these containers would be started again; here the pod would be done, and replaced for ever.
    spec["template"]["metadata"]["annotations"].pop("gpu-portal.io/run-for", None)
    if kind == "StatefulSet":
        spec["podManagementPolicy"] = rng.choice(["OrderedReady", "Parallel"])
    return _named("apps/v1", kind, namespace, name, {"spec": spec})


def template(rng: Random, labels: Object, amounts: Object) -> Object:
    """Return metadata and spec of a pod that satisfies Pod Security `restricted`."""
    container: Object = {"name": "main", "image": PAUSE, "securityContext": SAFE}
    work = rng.choices(WORK, [20, *[1] * (len(WORK) - 1)])[0]
    if amounts or work:
        container["resources"] = {"requests": {**work, **amounts}, "limits": amounts}
    containers = [container]
    if rng.random() < 0.15:
        containers.append({"name": "second", "image": PAUSE, "securityContext": SAFE})
    spec: Object = {
        "containers": containers,
        "securityContext": SAFE_POD,
        "terminationGracePeriodSeconds": rng.choice([0, 1, 2, 5, 12]),
    }
    if rng.random() < 0.08:
        spec["tolerations"] = [TOLERATION]
    if rng.random() < 0.03:
        spec["schedulingGates"] = [{"name": "example.com/gate"}]
    return {"metadata": {"labels": labels, "annotations": behaviour(rng)}, "spec": spec}


def behaviour(rng: Random) -> dict[str, str]:
    """Return annotations: whether the simulated node lets the pod end, fail, or ignore SIGTERM; and which slices it
    uses.
    """
    found: dict[str, str] = {}
    if rng.random() < 0.35:
        found["gpu-portal.io/run-for"] = rng.choice(["1s", "2s", "5s", "60s"])
        if rng.random() < 0.3:
            found["gpu-portal.io/exit-code"] = "1"
    if rng.random() < 0.3:
        found["gpu-portal.io/ignore-sigterm"] = "true"
    elif rng.random() < 0.2:
        found["gpu-portal.io/stop-after"] = "3s"
    if rng.random() < 0.1:
        found["gpu-portal.io/slices"] = rng.choice(["0", "1", "2"])
    return found


def gpus(rng: Random) -> dict[str, str]:
    """Return amounts by resource: mostly one of a device plugin, sometimes 0, or another kind of name."""
    if rng.random() < 0.06:
        return {rng.choice(UNUSUAL_RESOURCES): str(rng.randint(0, 2))}
    return {rng.choice((RESOURCES[0], *RESOURCES)): str(rng.choices([0, 1, 2, 3, 4], [6, 60, 20, 8, 6])[0])}


def _named(version: str, kind: str, namespace: str, name: str, body: Object) -> Object:
    metadata = {**body.get("metadata", {}), "name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, **body, "metadata": metadata}
