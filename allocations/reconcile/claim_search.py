"""Keeps a custom claim from the scheduler while the scheduler would search for its devices in vain.

A claim was accepted because kube-scheduler finds its devices on an idle fleet (``claims.diagnostics``). On a fleet in
use it may try every combination and find none, again and again, while other pods wait. So the claim and its holder
exist only while the scheduler finds the devices in few steps.
"""

from datetime import timedelta
from fractions import Fraction

from allocations.capacity import device_inventory
from allocations.claims import fit
from allocations.claims.parse import parse
from allocations.cluster.backends import registry
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.objects import ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.models import Allocation
from portal.core.errors import Invalid

SEARCH_AGAIN_AFTER = timedelta(seconds=15)
"""A search may take a tenth of a second."""
NO_DEVICES = "no node has devices free for the whole claim, or the scheduler would take too long to find them"


def blocked(row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation) -> str:
    """Return why the claim of an admitted allocation must not reach the scheduler yet; "" if it may, or is there and
    the scheduler has not refused it.
    """
    claim = CustomClaim.of_column(row.claim)
    if claim is None or claim.built is None or not state.is_granted or state.occupied:
        return ""
    backend = registry.backend_of(spec)
    is_there = any(found is not None and not found.deleting for found in map(snapshot.get, backend.claims(spec)))
    if is_there and not backend.finds_no_device(spec, snapshot):
        return ""
    inventory = device_inventory.of_flavor(row.offering.flavor)
    try:
        parsed = parse(claim.document, inventory.schema)
    except Invalid as error:
        return f"the devices published now do not match the claim: {error.detail}"
    available = inventory.available(claim.built.memory_part or Fraction(0))
    return "" if fit.is_schedulable(parsed, available) else NO_DEVICES
