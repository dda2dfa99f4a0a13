"""Facts about GPU nodes. Pure."""

from collections.abc import Mapping
from typing import Any

from allocations.cluster.projectors.fields import GPU_PREFIXES, Raw, conditions, whole
from quotas.catalog import quantities


def node(raw: Raw) -> Mapping[str, Any] | None:
    """Return the facts of a node with GPU resources or NVIDIA labels; None for other nodes.

    ``gives`` is its allocatable CPU, memory and pods.
    """
    status, spec = raw.get("status", {}), raw.get("spec", {})
    labels = {
        k: v for k, v in raw["metadata"].get("labels", {}).items() if k.startswith(("nvidia.com/", "kubernetes.io/"))
    }
    gpus = {
        field: {r: whole(a) for r, a in status.get(field, {}).items() if r.startswith(GPU_PREFIXES)}
        for field in ("allocatable", "capacity")
    }
    if not any(gpus.values()) and not any(k.startswith("nvidia.com/") for k in labels):
        return None
    return {
        "labels": labels,
        **gpus,
        "gives": _allocatable(status.get("allocatable", {})),
        "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in spec.get("taints", ())],
        "ready": conditions(raw).get("Ready", {}).get("status") == "True",
        "unschedulable": bool(spec.get("unschedulable")),
    }


def _allocatable(amounts: Mapping[str, str]) -> dict[str, int]:
    """Return the node's allocatable CPU in millicores, memory in MiB, and pods."""
    return {
        "cpu_millicores": quantities.millicores(str(amounts.get("cpu", 0))),
        "memory_mib": quantities.mib(str(amounts.get("memory", 0))),
        "pods": whole(amounts.get("pods", 0)),
    }
