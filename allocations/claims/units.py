"""What the lease of a claim must count: the most that the claim can take of the flavor's pools. Pure.

Nobody knows beforehand which devices the scheduler will choose, and Kueue holds a team to its quota by plain
integers. So each request counts as the largest devices that meet it, alternatives as the largest of them, and all
devices of a node as those of the fullest node. Admin access takes nothing from anybody and counts nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from allocations.claims.matching import matching, shares
from allocations.claims.model import PROFILE, Choice, Claim, Device


@dataclass(frozen=True)
class DeviceDemand:
    """What one device takes: units of each of the flavor's resources, its part of a card's price, and of its memory."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    share: Fraction = Fraction(0)
    part: Fraction = Fraction(0)


@dataclass(frozen=True)
class DeviceDemands:
    """By kind of device: of a whole card (None where the flavor has none), of each profile, of one share of a card."""

    whole: DeviceDemand | None = None
    profiles: Mapping[str, DeviceDemand] = field(default_factory=dict)
    share: DeviceDemand | None = None

    def for_device(self, device: Device) -> DeviceDemand | None:
        if device.shareable:
            return self.share
        return self.whole if device.kind == "gpu" else self.profiles.get(str(device.attributes.get(PROFILE, "")))


class Uncountable(Exception):
    """Why nothing can be counted, and what would let it be; ``path`` is the document's."""

    def __init__(self, path: str, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.path, self.detail, self.hint = path, detail, hint


def max_demand(claim: Claim, devices: Sequence[Device], demands: DeviceDemands) -> DeviceDemand:
    """The most that the claim can take. Raises Uncountable."""
    parts = [_largest([_of(choice, devices, demands) for choice in request.choices]) for request in claim.requests]
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part.amounts)
    return DeviceDemand(dict(total), sum((part.share for part in parts), Fraction(0)))


def excess(counted: Mapping[str, int], given: Sequence[tuple[Device, int]], demands: DeviceDemands) -> dict[str, int]:
    """Units by resource of the devices given, each with the shares taken of it, where they are more than counted."""
    demanded = [(demands.for_device(device), shares_taken) for device, shares_taken in given]
    total = _sum([_times(demand, shares_taken) for demand, shares_taken in demanded if demand is not None]).amounts
    return {resource: amount for resource, amount in total.items() if amount > counted.get(resource, 0)}


def _of(choice: Choice, devices: Sequence[Device], demands: DeviceDemands) -> DeviceDemand:
    if choice.admin_access:
        return DeviceDemand()
    found = matching(choice, devices)
    demanded = [_demanded(choice, device, demands) for device in found]
    if choice.count is not None:
        return _times(_largest(demanded), choice.count)
    by_node: dict[str, list[DeviceDemand]] = defaultdict(list)
    for device, demand in zip(found, demanded, strict=True):
        by_node[device.node].append(demand)
    return _largest([_sum(there) for there in by_node.values()])


def _demanded(choice: Choice, device: Device, demands: DeviceDemands) -> DeviceDemand:
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
    """The largest amount of each resource, whichever of them it is in."""
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
