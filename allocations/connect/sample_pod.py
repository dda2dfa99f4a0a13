"""Builds the example pod of an allocation.

It meets Pod Security ``restricted`` and requests no GPU itself: the admission policies add what is missing, given the
allocation's label (and the index of a slice, if each slice has its own claim). It requests the CPU and memory of its
slices' node share.
"""

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain.objects import Manifest, ResolvedSpec


def build(spec: ResolvedSpec) -> Manifest:
    """Return the manifest of the example pod."""
    annotations = registry.backend_of(spec).annotations(spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.example(spec.name),
            "namespace": spec.namespace,
            "labels": {names.ALLOCATION: spec.name},
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
                    "resources": {"requests": _amounts(spec)},
                }
            ],
        },
    }


def _amounts(spec: ResolvedSpec) -> dict[str, str]:
    return spec.pod_share.amounts if spec.pod_share else {"cpu": "100m", "memory": "256Mi"}
