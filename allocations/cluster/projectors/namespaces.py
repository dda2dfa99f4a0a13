"""Facts about namespaces and the objects in them that the portal applies: quotas and GpuProjects. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from allocations.cluster import names
from allocations.cluster.projectors.fields import Raw, conditions, created_at
from quotas.catalog import quantities

REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure")
"""Conditions of a namespace that say what delays its deletion."""


def namespace(raw: Raw) -> Mapping[str, Any]:
    """Return the facts of a namespace. ``remaining``: what delays its deletion, as Kubernetes words it."""
    by_type = conditions(raw)
    remaining = [by_type[name]["message"] for name in REMAINING if by_type.get(name, {}).get("status") == "True"]
    return {"created_at": created_at(raw), **({"remaining": remaining} if remaining else {})}


def quota(raw: Raw) -> Mapping[str, Any]:
    """Return the facts of a ResourceQuota.

    ``slices`` is the portal's annotation: allocation → slices by resource. ``shown``: whether ``status.hard`` equals
    ``spec.hard``, so that the quota is enforced as written.
    """
    annotation = raw["metadata"].get("annotations", {}).get(names.SLICES, "{}")
    hard, status = (_amounts(raw.get(part, {}).get("hard", {})) for part in ("spec", "status"))
    return {"slices": json.loads(annotation), "hard": hard, "shown": hard == status}


def _amounts(hard: Raw) -> dict[str, str]:
    """Return exact amounts however Kubernetes writes them: 1000m and 1 are both ``1``, 1500m is ``3/2``."""
    return {name: str(quantities.value(str(amount))) for name, amount in hard.items()}


def gpu_project(raw: Raw) -> Mapping[str, Any]:
    """Return the facts of a GpuProject. ``classes`` are the PriorityClasses that its allocations' pods get."""
    allocations = raw.get("spec", {}).get("allocations", {})
    classes = {entry.get("priorityClassName", "") for entry in allocations.values()}
    return {"created_at": created_at(raw), "allocations": sorted(allocations), "classes": sorted(classes - {""})}
