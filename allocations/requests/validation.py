"""Validates the fields of a request against each other and the offering."""

from allocations.claims import config
from allocations.claims.reading import Errors
from allocations.domain.allocation_spec import AllocationSpec, Constraints, Sharing
from allocations.domain.backend_capabilities import CAPABILITIES
from quotas.catalog.models import Kind, Offering


def problems(offering: Offering, request: AllocationSpec) -> dict[str, list[str]]:
    """{field: [sentence]}; needs the offering's flavor. What never fits, though well said, is for ``rules``."""
    errors = Errors()
    for sentence in _of_constraints(request.constraints):
        errors.add("constraints", sentence)
    if why_not := _of_sharing(offering, request.sharing):
        errors.add("sharing", why_not)
    elif request.sharing:
        device = "mig" if offering.kind == Kind.MIG else "gpu"
        config.read(request.sharing.to_json(), "sharing", errors, device, max(1, request.count))
    return errors.by_path


def _of_constraints(constraints: Constraints) -> list[str]:
    found = []
    if constraints.same_gpu and constraints.distinct_gpus:
        found.append("same_gpu and distinct_gpus exclude each other: leave one out.")
    in_one_claim = sorted(set(constraints.names) - {"same_clique"}) if constraints.spread else ()
    for name in in_one_claim:
        found.append(f"{name} needs all slices in one claim, so on one node: leave spread or {name} out.")
    return found


def _of_sharing(offering: Offering, sharing: Sharing) -> str:
    """Why pods cannot share a claim of the offering so; empty when they can."""
    if not sharing:
        return ""
    backend = CAPABILITIES[offering.flavor.path]
    if not backend.configures_sharing:
        return f"How slices by {backend.label} are shared is set on the node: leave sharing out."
    if offering.kind not in (Kind.WHOLE, Kind.MIG):
        words = "Say it in the claim's config." if offering.kind == Kind.CLAIM else "They are shared already."
        return f"sharing is for whole GPUs and MIG slices. {words}"
    if sharing.strategy == "MPS" and offering.flavor.partitionable:
        return "The DRA driver cuts these cards on demand, and has no MPS then. Use strategy TimeSlicing."
    return ""
