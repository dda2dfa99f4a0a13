"""Computes the resources that a pod requests: GPUs by resource, and CPU and memory of its node. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from math import ceil

from allocations.cluster.projectors.fields import REQUESTED_PREFIXES, Raw, whole
from allocations.domain.observed_facts import NodeRequests
from quotas.catalog import quantities

UNITS = {"cpu": 1000, "memory": 1}
"""Units counted per unit that Kubernetes writes: millicores per core, bytes per byte."""


def gpu_requests(pod_spec: Raw) -> dict[str, int]:
    """Return the most GPUs that a pod requests by resource, not by claim, at one time."""
    return dict(_peak(pod_spec, _gpu_limits))


def node_requests(pod_spec: Raw) -> NodeRequests:
    """Return the CPU in millicores and the memory in MiB that the scheduler reserves for a pod, rounded up.

    Pod-level requests replace those of its containers; the overhead of its runtime class is added.
    Source: Kubernetes, pod-level resources, pod overhead.
    """
    pod_level, overhead = (_cpu_and_bytes(part) for part in (_requests(pod_spec), pod_spec.get("overhead", {})))
    containers = _peak(pod_spec, lambda container: _cpu_and_bytes(_requests(container)))
    total = Counter({**containers, **pod_level}) + overhead
    return {"cpu_millicores": total["cpu"], "memory_mib": -(-total["memory"] // 2**20)}


def _peak(pod_spec: Raw, amounts: Callable[[Raw], Counter[str]]) -> Counter[str]:
    """Return the most that a pod's containers need at one time, given the ``amounts`` of each container.

    Containers run together with the sidecars (init containers that always restart); every other init container runs
    alone with the sidecars before it. Source: Kubernetes, sidecar containers, resource sharing within containers.
    """
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod_spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            sidecars += amounts(container)
        else:
            peak |= sidecars + amounts(container)
    total = sum((amounts(container) for container in pod_spec.get("containers", ())), sidecars)
    return peak | total


def _gpu_limits(container: Raw) -> Counter[str]:
    resources = container.get("resources", {})
    amounts = {**resources.get("requests", {}), **resources.get("limits", {})}
    return Counter({r: whole(a) for r, a in amounts.items() if r.startswith(REQUESTED_PREFIXES)})


def _requests(owner: Raw) -> Mapping[str, str]:
    """Return ``resources.requests`` of a container or a pod's spec."""
    requests: Mapping[str, str] = owner.get("resources", {}).get("requests", {})
    return requests


def _cpu_and_bytes(requests: Raw) -> Counter[str]:
    """Return the requested CPU in millicores and memory in bytes."""
    return Counter({r: ceil(quantities.value(str(requests[r])) * unit) for r, unit in UNITS.items() if r in requests})
