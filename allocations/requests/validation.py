"""Validates the fields of a request against each other and the offering."""

from allocations.claims import config
from allocations.claims.reading import Errors
from allocations.domain.allocation_spec import AllocationSpec, Constraints, Sharing
from allocations.domain.backend_capabilities import CAPABILITIES
from portal.core import labels
from quotas.catalog.models import Kind, Offering


def problems(offering: Offering, spec: AllocationSpec) -> dict[str, list[str]]:
    """Return the errors of a request by field; needs the offering's flavor. Whether it fits is decided in ``rules``."""
    errors = Errors()
    for sentence in _constraint_problems(spec.constraints):
        errors.add("constraints", sentence)
    for sentence in labels.problems(spec.labels.to_json()):
        errors.add("labels", sentence)
    if problem := _sharing_problem(offering, spec.sharing):
        errors.add("sharing", problem)
    elif spec.sharing:
        device = "mig" if offering.kind == Kind.MIG else "gpu"
        config.read(spec.sharing.to_json(), "sharing", errors, device, max(1, spec.count))
    return errors.by_path


def _constraint_problems(constraints: Constraints) -> list[str]:
    found = []
    if constraints.same_gpu and constraints.distinct_gpus:
        found.append("same_gpu and distinct_gpus exclude each other: leave one out.")
    in_one_claim = sorted(set(constraints.names) - {"same_clique"}) if constraints.spread else ()
    for name in in_one_claim:
        found.append(f"{name} needs all slices in one claim, so on one node: leave spread or {name} out.")
    return found


def _sharing_problem(offering: Offering, sharing: Sharing) -> str:
    """Return why pods cannot share a claim of the offering in this way, or ""."""
    if not sharing:
        return ""
    backend = CAPABILITIES[offering.flavor.path]
    if not backend.configures_sharing:
        return f"How slices by {backend.label} are shared is set on the node: leave sharing out."
    if offering.kind not in (Kind.WHOLE, Kind.MIG):
        remedy = "Say it in the claim's config." if offering.kind == Kind.CLAIM else "They are shared already."
        return f"sharing is for whole GPUs and MIG slices. {remedy}"
    if sharing.strategy == "MPS" and offering.flavor.partitionable:
        return "The DRA driver cuts these GPUs on demand, and has no MPS then. Use strategy TimeSlicing."
    return ""
