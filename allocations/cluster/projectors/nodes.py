"""Facts about GPU nodes. Pure."""

from collections.abc import Mapping

from allocations.cluster.projectors.fields import GPU_PREFIXES, Raw, conditions, whole
from allocations.domain.observed_facts import NodeAllocatable, NodeFacts, NodeSize
from quotas.catalog import quantities
from quotas.costs.node_terms import TERMS_BY_LABEL

LABEL_PREFIXES = ("nvidia.com/", "kubernetes.io/")


def node(raw: Raw) -> NodeFacts | None:
    """Return the facts of a node with GPU resources or NVIDIA labels; None for other nodes."""
    status, spec = raw.get("status", {}), raw.get("spec", {})
    labels = {
        k: v
        for k, v in raw["metadata"].get("labels", {}).items()
        if k.startswith(LABEL_PREFIXES) or k in TERMS_BY_LABEL
    }
    allocatable, capacity = (
        {r: whole(a) for r, a in status.get(field, {}).items() if r.startswith(GPU_PREFIXES)}
        for field in ("allocatable", "capacity")
    )
    if not allocatable and not capacity and not any(k.startswith("nvidia.com/") for k in labels):
        return None
    return {
        "labels": labels,
        "allocatable": allocatable,
        "capacity": capacity,
        "gives": _allocatable(status.get("allocatable", {})),
        "size": _size(status.get("capacity", {})),
        "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in spec.get("taints", ())],
        "ready": conditions(raw).get("Ready", {}).get("status") == "True",
        "unschedulable": bool(spec.get("unschedulable")),
        "conditions": conditions(raw),
    }


def _allocatable(amounts: Mapping[str, str]) -> NodeAllocatable:
    """Return the node's allocatable CPU in millicores, memory in MiB, and pods."""
    return {
        "cpu_millicores": quantities.millicores(str(amounts.get("cpu", 0))),
        "memory_mib": quantities.mib(str(amounts.get("memory", 0))),
        "pods": whole(amounts.get("pods", 0)),
    }


def _size(amounts: Mapping[str, str]) -> NodeSize:
    """Return the node's CPU in millicores and memory in MiB, with what the system has of them."""
    return {
        "cpu_millicores": quantities.millicores(str(amounts.get("cpu", 0))),
        "memory_mib": quantities.mib(str(amounts.get("memory", 0))),
    }
