"""The example pod of an allocation. The admission policies add everything that is missing.

It meets Pod Security ``restricted`` and requests no GPU itself: the label is enough, with both backends, or the label
and the index of a slice if each slice has its own claim. It requests the CPU and memory that go with its slices.
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
