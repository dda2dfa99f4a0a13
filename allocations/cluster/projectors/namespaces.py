"""Facts about namespaces and the objects in them that the portal applies: quotas and GpuProjects. Pure."""

import json

from allocations.cluster import names
from allocations.cluster.projectors.fields import Raw, conditions, created_at
from allocations.domain.observed_facts import GpuProjectFacts, NamespaceFacts, ResourceQuotaFacts
from quotas.catalog import quantities

REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure")
"""Conditions of a namespace that say what delays its deletion."""


def namespace(raw: Raw) -> NamespaceFacts:
    """Return the facts of a namespace."""
    by_type = conditions(raw)
    remaining = [by_type[name]["message"] for name in REMAINING if by_type.get(name, {}).get("status") == "True"]
    facts: NamespaceFacts = {"created_at": created_at(raw)}
    if remaining:
        facts["remaining"] = remaining
    return facts


def quota(raw: Raw) -> ResourceQuotaFacts:
    """Return the facts of a ResourceQuota."""
    annotation = raw["metadata"].get("annotations", {}).get(names.SLICES, "{}")
    hard, status = (_amounts(raw.get(part, {}).get("hard", {})) for part in ("spec", "status"))
    return {"slices": json.loads(annotation), "hard": hard, "shown": hard == status}


def _amounts(hard: Raw) -> dict[str, str]:
    """Return exact amounts however Kubernetes writes them: 1000m and 1 are both ``1``, 1500m is ``3/2``."""
    return {name: str(quantities.value(str(amount))) for name, amount in hard.items()}


def gpu_project(raw: Raw) -> GpuProjectFacts:
    """Return the facts of a GpuProject."""
    allocations = raw.get("spec", {}).get("allocations", {})
    classes = {entry.get("priorityClassName", "") for entry in allocations.values()}
    return {"created_at": created_at(raw), "allocations": sorted(allocations), "classes": sorted(classes - {""})}
