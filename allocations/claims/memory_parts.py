"""Computes the least GPU memory that a claim can get, which determines its share of CPU and memory. Pure.

The scheduler chooses the devices later. The lease counts the largest devices (``units``), but the node share is that of
the smallest: the rest of the GPU's share is for its other devices.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from allocations.claims.matching import matching, shares
from allocations.claims.model import Choice, Claim, Device
from allocations.claims.units import DeviceDemands


def min_memory_part(claim: Claim, devices: Sequence[Device], demands: DeviceDemands) -> Fraction:
    """Return the least GPU memory of the claim in GPUs: 2 for two GPUs, 1/8 for a choice of a GPU or an eighth."""
    return sum((_of_request(request.choices, devices, demands) for request in claim.requests), Fraction(0))


def _of_request(choices: Sequence[Choice], devices: Sequence[Device], demands: DeviceDemands) -> Fraction:
    parts = [part for choice in choices if (part := _of_choice(choice, devices, demands)) is not None]
    return min(parts, default=Fraction(0))


def _of_choice(choice: Choice, devices: Sequence[Device], demands: DeviceDemands) -> Fraction | None:
    """Return the least GPU memory of a choice; None if no device matches it."""
    if choice.admin_access:
        return Fraction(0)
    by_node: dict[str, list[Fraction]] = defaultdict(list)
    for device in matching(choice, devices):
        if demand := demands.for_device(device):
            by_node[device.node].append(demand.part * (shares(choice) if device.shareable else 1))
    if choice.count is not None:
        return min((min(parts) * choice.count for parts in by_node.values()), default=None)
    return min((sum(parts, Fraction(0)) for parts in by_node.values()), default=None)
