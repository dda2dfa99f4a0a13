"""The share of its nodes' CPU, memory and pods that comes with an allocation.

Needs no query if the row has the relations of ``spec_of_row.rows()``.
"""

from fractions import Fraction

from allocations.domain.custom_claim import BuiltClaim, CustomClaim
from allocations.models import Allocation
from quotas.catalog.claim_parts import GpuFact, memory_part
from quotas.catalog.models import Kind, Offering
from quotas.catalog.node_shares import NodeShare, of_claim


def node_share(row: Allocation) -> NodeShare:
    """Return the share of all slices of the allocation; false if no node has reported its capacity."""
    return of_request(row.offering, row.count, CustomClaim.of_column(row.claim))


def of_request(offering: Offering, count: int, claim: CustomClaim | None) -> NodeShare:
    """Return the share of ``count`` slices; ``claim`` is for offerings of kind claim."""
    if offering.kind != Kind.CLAIM or claim is None or claim.built is None:
        return offering.node_share.times(count)
    return of_claim(offering.flavor.per_gpu, _claim_part(claim.built, offering))


def _claim_part(built: BuiltClaim, offering: Offering) -> Fraction:
    """Return the GPU memory in GPUs that the claim uses at least; for older claims, what its lease counts."""
    if built.memory_part is not None:
        return built.memory_part
    flavor = offering.flavor
    gpu = GpuFact(flavor.product, flavor.whole_gpu_mib, flavor.geometry.get("memory", 0), offering.replicas)
    return memory_part(built.units, gpu)
