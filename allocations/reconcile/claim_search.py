"""Keeps a claim from the scheduler while the scheduler would search for its devices in vain.

A request was accepted because its devices are found on an idle fleet. On a fleet in use the scheduler may try every
combination and find none, again and again, while other pods wait: a claim has a request for each slice, and equal
requests are tried in every order. So the claim and its holder exist only while the devices are there. Of a custom claim
the scheduler's own search is followed, and has to find them in few steps.
"""

from datetime import timedelta
from fractions import Fraction

from allocations.capacity import device_inventory, flavor_devices
from allocations.claims import fit
from allocations.claims.parse import parse
from allocations.cluster.backends import registry
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.objects import ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.models import Allocation
from portal.core.errors import Invalid

SEARCH_AGAIN_AFTER = timedelta(seconds=15)
"""A search may take a tenth of a second."""
FEW = 4
"""Equal requests of which all orders are tried in no time."""
NO_DEVICES = "no node has devices free for the whole claim, or the scheduler would take too long to find them"


def blocked(row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation) -> str:
    """Return why the claim of an admitted allocation must not reach the scheduler yet; "" if it may, or is there and
    the scheduler has not refused it.
    """
    claim = CustomClaim.of_column(row.claim)
    is_built = claim is not None and claim.built is not None
    if not state.is_granted or state.occupied or not (is_built or has_many_requests(spec)):
        return ""
    backend = registry.backend_of(spec)
    is_there = any(found is not None and not found.deleting for found in map(snapshot.get, backend.claims(spec)))
    if is_there and not backend.finds_no_device(spec, snapshot):
        return ""
    if claim is None or claim.built is None:
        return "" if _has_room(row, spec) else NO_DEVICES
    inventory = device_inventory.of_flavor(row.offering.flavor)
    try:
        parsed = parse(claim.document, inventory.schema)
    except Invalid as error:
        return f"the devices published now do not match the claim: {error.detail}"
    available = inventory.available(claim.built.memory_part or Fraction(0))
    return "" if fit.is_schedulable(parsed, available) else NO_DEVICES


def has_many_requests(spec: ResolvedSpec) -> bool:
    """Return whether slices are requested of one node by a claim that has many requests."""
    return CAPABILITIES[spec.path].names_devices and not spec.constraints.spread and spec.slices > FEW


def _has_room(row: Allocation, spec: ResolvedSpec) -> bool:
    """Return whether some node has room for all slices of an allocation."""
    constraints, flavor = spec.constraints, row.offering.flavor
    devices = flavor_devices.of_flavors([flavor], cliques=constraints.same_clique)[flavor.pk]
    shape = flavor_devices.slice_shape(row.offering)
    return devices.max_colocated(shape, constraints.names, spread=False) >= spec.slices
