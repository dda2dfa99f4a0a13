"""What a request may say of its slices beside their number: whether the words fit each other and the offering."""

from collections.abc import Collection, Mapping
from typing import Any

from allocations.capacity.packing import CONSTRAINTS, DISTINCT_GPUS, SAME_GPU, SAME_PCIE_ROOT
from allocations.claims import config
from allocations.claims.reading import Errors
from quotas.catalog.models import Kind, Offering, Path


def problems(
    offering: Offering, count: int, *, spread: bool, constraints: Collection[str], sharing: Mapping[str, Any]
) -> dict[str, list[str]]:
    """{field: [sentence]}; needs the offering's flavor. What never fits, though well said, is for ``rules``."""
    errors = Errors()
    for sentence in _of_constraints(spread, set(constraints)):
        errors.add("constraints", sentence)
    if why_not := _of_sharing(offering, sharing):
        errors.add("sharing", why_not)
    elif sharing:
        config.read(sharing, "sharing", errors, "mig" if offering.kind == Kind.MIG else "gpu", max(1, count))
    return errors.found


def _of_constraints(spread: bool, constraints: set[str]) -> list[str]:
    if unknown := sorted(constraints - set(CONSTRAINTS)):
        return [f"There is no constraint {', '.join(unknown)}. Use spread, {', '.join(CONSTRAINTS)}."]
    found = []
    if {SAME_GPU, DISTINCT_GPUS} <= constraints:
        found.append("same_gpu and distinct_gpus exclude each other: leave one out.")
    for name in sorted(constraints & {SAME_GPU, SAME_PCIE_ROOT, DISTINCT_GPUS} if spread else ()):
        found.append(f"{name} needs all slices in one claim, so on one node: leave spread or {name} out.")
    return found


def _of_sharing(offering: Offering, sharing: Mapping[str, Any]) -> str:
    """Why pods cannot share a claim of the offering so; empty when they can."""
    if not sharing:
        return ""
    if offering.flavor.path != Path.DRA:
        return "How slices by device plugin are shared is set on the node: leave sharing out."
    if offering.kind not in (Kind.WHOLE, Kind.MIG):
        words = "Say it in the claim's config." if offering.kind == Kind.CLAIM else "They are shared already."
        return f"sharing is for whole GPUs and MIG slices. {words}"
    if sharing.get("strategy") == "MPS" and offering.flavor.partitionable:
        return "The DRA driver cuts these cards on demand, and has no MPS then. Use strategy TimeSlicing."
    return ""
