"""Isolation of an allocation from others on the same GPUs, and of its own pods from each other."""

from allocations.domain.allocation_spec import Sharing
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation, of_allocation, of_slice
from quotas.catalog.models import Offering


def slice_isolation(offering: Offering) -> Isolation:
    """Return the isolation of one slice of an offering."""
    return of_slice(offering.isolation, offering.sharing, offering.replicas, offering.memory_mib)


def request_isolation(offering: Offering, sharing: Sharing, claim: CustomClaim | None) -> Isolation:
    """Return the isolation of a request or an allocation. Pods that share its devices are not isolated."""
    return of_allocation(slice_isolation(offering), sharing, claim)
