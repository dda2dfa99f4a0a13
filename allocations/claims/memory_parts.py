"""Computes the least GPU memory that a claim can get, which determines its share of CPU and memory. Pure.

The scheduler chooses the devices later. The lease counts the largest devices (``units``), but the node share is that of
the smallest: the rest of the GPU's share is for its other devices.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from allocations.claims.device_index import DeviceIndex
from allocations.claims.matching import shares
from allocations.claims.model import Choice, Claim
from allocations.claims.units import DeviceDemands


def min_memory_part(claim: Claim, devices: DeviceIndex, demands: DeviceDemands) -> Fraction:
    """Return the least GPU memory of the claim in GPUs: 2 for two GPUs, 1/8 for a choice of a GPU or an eighth."""
    return sum((_of_request(request.choices, devices, demands) for request in claim.requests), Fraction(0))


def _of_request(choices: Sequence[Choice], devices: DeviceIndex, demands: DeviceDemands) -> Fraction:
    parts = [part for choice in choices if (part := _of_choice(choice, devices, demands)) is not None]
    return min(parts, default=Fraction(0))


def _of_choice(choice: Choice, devices: DeviceIndex, demands: DeviceDemands) -> Fraction | None:
    """Return the least GPU memory of a choice; None if no device matches it."""
    if choice.admin_access:
        return Fraction(0)
    by_node: dict[str, list[Fraction]] = defaultdict(list)
    for node, device, size in devices.groups(choice):
        if demand := demands.for_device(device):
            part = demand.part * (shares(choice) if device.shareable else 1)
            by_node[node].append(part * (size if choice.count is None else choice.count))
    if choice.count is not None:
        return min((min(parts) for parts in by_node.values()), default=None)
    return min((sum(parts, Fraction(0)) for parts in by_node.values()), default=None)
