"""What stands between an allocation and others on its GPUs, and between its own pods."""

from allocations.domain.allocation_spec import Sharing
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation, of_allocation, of_slice
from quotas.catalog.models import Offering


def offered(offering: Offering) -> Isolation:
    """The isolation of one slice as it is offered."""
    return of_slice(offering.isolation, offering.sharing, offering.replicas, offering.memory_mib)


def requested(offering: Offering, sharing: Sharing, claim: CustomClaim | None) -> Isolation:
    """The isolation of what is held by a request or an allocation: pods that share its devices are not isolated."""
    return of_allocation(offered(offering), sharing, claim)
