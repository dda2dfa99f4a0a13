"""Computes the units that a claim's lease must reserve: the most that it can use of its flavor's pools. Pure.

The scheduler chooses the devices later, but Kueue enforces quotas by integers known before. So each request counts as
the largest devices that meet it, alternatives as the largest of them, and all devices of a node as those of the node
with the most. Admin access counts nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from allocations.claims.device_index import DeviceIndex
from allocations.claims.matching import shares
from allocations.claims.model import PROFILE, Choice, Claim, Device


@dataclass(frozen=True)
class DeviceDemand:
    """What one device uses: units of the flavor's resources, and its fractions of a GPU's price and memory.

    ``share`` is the fraction of the price, ``part`` that of the memory.
    """

    amounts: Mapping[str, int] = field(default_factory=dict)
    share: Fraction = Fraction(0)
    part: Fraction = Fraction(0)


@dataclass(frozen=True)
class DeviceDemands:
    """The demands of a whole GPU, each MIG profile, and one share of a GPU; None for what is not offered."""

    whole: DeviceDemand | None = None
    profiles: Mapping[str, DeviceDemand] = field(default_factory=dict)
    share: DeviceDemand | None = None

    def for_device(self, device: Device) -> DeviceDemand | None:
        """Return the demand of the device, or of one share of it; None if no pool has it."""
        if device.shareable:
            return self.share
        return self.whole if device.kind == "gpu" else self.profiles.get(str(device.attributes.get(PROFILE, "")))


class Uncountable(Exception):
    """A claim could get devices that no pool counts. ``path`` is in the document; ``hint`` says how to change it."""

    def __init__(self, path: str, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.path, self.detail, self.hint = path, detail, hint


def max_demand(claim: Claim, devices: DeviceIndex, demands: DeviceDemands) -> DeviceDemand:
    """Return the largest demand of the claim. Raises Uncountable."""
    by_request = [
        _largest([_of_choice(choice, devices, demands) for choice in request.choices]) for request in claim.requests
    ]
    total: Counter[str] = Counter()
    for demand in by_request:
        total.update(demand.amounts)
    return DeviceDemand(dict(total), sum((demand.share for demand in by_request), Fraction(0)))


def excess(counted: Mapping[str, int], devices: Sequence[tuple[Device, int]], demands: DeviceDemands) -> dict[str, int]:
    """Return the units of the allocated devices for each resource of which they use more than is counted.

    ``devices`` are (device, shares allocated of it).
    """
    used = [(demands.for_device(device), share_count) for device, share_count in devices]
    total = _sum([_times(demand, share_count) for demand, share_count in used if demand is not None]).amounts
    return {resource: amount for resource, amount in total.items() if amount > counted.get(resource, 0)}


def _of_choice(choice: Choice, devices: DeviceIndex, demands: DeviceDemands) -> DeviceDemand:
    if choice.admin_access:
        return DeviceDemand()
    groups = devices.groups(choice)
    by_group = [_of_device(choice, group.device, demands) for group in groups]
    if choice.count is not None:
        return _times(_largest(by_group), choice.count)
    by_node: dict[str, list[DeviceDemand]] = defaultdict(list)
    for group, demand in zip(groups, by_group, strict=True):
        by_node[group.node].append(_times(demand, group.size))
    return _largest([_sum(node_demands) for node_demands in by_node.values()])


def _of_device(choice: Choice, device: Device, demands: DeviceDemands) -> DeviceDemand:
    demand = demands.for_device(device)
    if demand is None:
        what = str(device.attributes.get(PROFILE) or ("share of a GPU" if device.shareable else "whole GPU"))
        raise Uncountable(
            choice.path,
            f"It could take {device.name} of {device.node} ({what}), which is in no pool of the flavor.",
            "Narrow it, by a profile for example, to what GET /offerings lists of the flavor.",
        )
    return _times(demand, shares(choice)) if device.shareable else demand


def _largest(demands: Sequence[DeviceDemand]) -> DeviceDemand:
    """Return the largest amount of each resource in any of the demands."""
    names = {name for demand in demands for name in demand.amounts}
    return DeviceDemand(
        {name: max(demand.amounts.get(name, 0) for demand in demands) for name in names},
        max((demand.share for demand in demands), default=Fraction(0)),
    )


def _times(demand: DeviceDemand, count: int) -> DeviceDemand:
    return DeviceDemand({name: amount * count for name, amount in demand.amounts.items()}, demand.share * count)


def _sum(demands: Sequence[DeviceDemand]) -> DeviceDemand:
    total: Counter[str] = Counter()
    for demand in demands:
        total.update(demand.amounts)
    return DeviceDemand(dict(total), sum((demand.share for demand in demands), Fraction(0)))
