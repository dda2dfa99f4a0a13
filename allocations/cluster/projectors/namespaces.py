"""Facts about namespaces and the objects in them that the portal applies: quotas and GpuProjects. Pure."""

import json

from allocations.cluster import names
from allocations.cluster.projectors.fields import Raw, conditions, created_at, iso_time
from allocations.domain.observed_facts import GpuProjectFacts, NamespaceFacts, ObservedFacts, ResourceQuotaFacts
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
    is_shown = hard == status
    return {
        "slices": json.loads(annotation),
        "hard": hard,
        "shown": is_shown,
        "shown_at": _written_at(raw["metadata"]) if is_shown else "",
    }


def keep_shown_at(before: ObservedFacts, after: ObservedFacts) -> ObservedFacts:
    """Return the facts of a quota with the time since when it shows the same as before: its status is written again
    whenever what is used of it changes.
    """
    is_same = all(before.get(name) == after.get(name) for name in ("slices", "hard", "shown"))
    return {**after, "shown_at": before["shown_at"]} if is_same and "shown_at" in before else after


def _written_at(metadata: Raw) -> str:
    """Return when the portal last wrote the quota or Kubernetes its ``status.hard``, by ``managedFields``; "" if these
    do not say.
    """
    entries = metadata.get("managedFields", ())
    writers = (
        entry
        for entry in entries
        if entry.get("manager") == names.FIELD_MANAGER or "f:hard" in entry.get("fieldsV1", {}).get("f:status", {})
    )
    return iso_time(max((entry.get("time", "") for entry in writers), default=""))


def _amounts(hard: Raw) -> dict[str, str]:
    """Return exact amounts however Kubernetes writes them: 1000m and 1 are both ``1``, 1500m is ``3/2``."""
    return {name: str(quantities.value(str(amount))) for name, amount in hard.items()}


def gpu_project(raw: Raw) -> GpuProjectFacts:
    """Return the facts of a GpuProject."""
    return {"created_at": created_at(raw), "allocations": sorted(raw.get("spec", {}).get("allocations", {}))}
