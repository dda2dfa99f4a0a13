"""Claims of several slices on one GPU, without the portal, and what the scheduler gives them."""

import json
from collections.abc import Sequence
from typing import Any

from allocations.cluster.gpu_selector import of_gpu
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually

SELECT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
Manifest = dict[str, Any]


def allocated(kubectl: Kubectl, namespace: str, names: set[str]) -> dict[str, list[dict[str, str]]]:
    """Return the device allocated to each claim, once all of them have one."""

    def results_if_complete() -> dict[str, list[dict[str, str]]]:
        rows = json.loads(kubectl("get", "resourceclaims", "-n", namespace, "-o", "json"))["items"]
        of = {row["metadata"]["name"]: row.get("status", {}).get("allocation", {}) for row in rows}
        results = {name: found.get("devices", {}).get("results", []) for name, found in of.items()}
        return results if set(results) == names and all(results.values()) else {}

    return eventually(results_if_complete, within_s=60)


def listed(items: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def claimed(namespace: str, name: str, profiles: Sequence[str], gpu: str = "") -> list[Manifest]:
    """Return a claim of all the slices on one GPU, by UUID or any GPU, and a pod that uses it."""
    steered = [{"cel": {"expression": of_gpu(gpu)}}] if gpu else []
    requests = [
        {
            "name": f"slice-{n}",
            "exactly": {
                "deviceClassName": "mig.nvidia.com",
                "selectors": [
                    {"cel": {"expression": f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'}},
                    *steered,
                ],
            },
        }
        for n, profile in enumerate(profiles)
    ]
    devices = {"requests": requests, "constraints": [{"matchAttribute": "gpu.nvidia.com/parentUUID"}]}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"claims": [{"name": "gpu"}]}}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": devices},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "nodeSelector": SELECT,
                "tolerations": [{"operator": "Exists"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                "containers": [container],
            },
        },
    ]
