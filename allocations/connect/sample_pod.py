"""A pod to begin with: what a tenant runs to use an allocation. The admission policies add all that is missing.

It fits Pod Security ``restricted`` and asks for no GPU itself: the label is enough, by DRA and by device plugin, or
the label and the index of a slice, where each slice has a claim of its own. It asks for the CPU and memory that go with
what it gets.
"""

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain.objects import Manifest, ResolvedSpec


def build(request: ResolvedSpec) -> Manifest:
    annotations = registry.backend_of(request).annotations(request)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.example(request.name),
            "namespace": request.namespace,
            "labels": {names.ALLOCATION: request.name},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": lease.PAUSE,
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "resources": {"requests": _amounts(request)},
                }
            ],
        },
    }


def _amounts(request: ResolvedSpec) -> dict[str, str]:
    return request.pod_share.amounts if request.pod_share else {"cpu": "100m", "memory": "256Mi"}
