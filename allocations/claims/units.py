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
class Draw:
    """What one device takes: units of each of the flavor's resources, its part of a card's price, and of its memory."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    share: Fraction = Fraction(0)
    part: Fraction = Fraction(0)


@dataclass(frozen=True)
class Draws:
    """By kind of device: of a whole card (None where the flavor has none), of each profile, of one share of a card."""

    whole: Draw | None = None
    profiles: Mapping[str, Draw] = field(default_factory=dict)
    share: Draw | None = None

    def of(self, device: Device) -> Draw | None:
        if device.shareable:
            return self.share
        return self.whole if device.kind == "gpu" else self.profiles.get(str(device.attributes.get(PROFILE, "")))


class Uncountable(Exception):
    """Why nothing can be counted, and what would let it be; ``path`` is the document's."""

    def __init__(self, path: str, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.path, self.detail, self.hint = path, detail, hint


def most(claim: Claim, devices: Sequence[Device], draws: Draws) -> Draw:
    """The most that the claim can take. Raises Uncountable."""
    parts = [_largest([_of(choice, devices, draws) for choice in request.choices]) for request in claim.requests]
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part.amounts)
    return Draw(dict(total), sum((part.share for part in parts), Fraction(0)))


def beyond(counted: Mapping[str, int], given: Sequence[tuple[Device, int]], draws: Draws) -> dict[str, int]:
    """Units by resource of the devices given, each with the shares taken of it, where they are more than counted."""
    drawn = [(draws.of(device), shares_taken) for device, shares_taken in given]
    total = _sum([_times(draw, shares_taken) for draw, shares_taken in drawn if draw is not None]).amounts
    return {resource: amount for resource, amount in total.items() if amount > counted.get(resource, 0)}


def _of(choice: Choice, devices: Sequence[Device], draws: Draws) -> Draw:
    if choice.admin_access:
        return Draw()
    found = matching(choice, devices)
    drawn = [_drawn(choice, device, draws) for device in found]
    if choice.count is not None:
        return _times(_largest(drawn), choice.count)
    by_node: dict[str, list[Draw]] = defaultdict(list)
    for device, draw in zip(found, drawn, strict=True):
        by_node[device.node].append(draw)
    return _largest([_sum(there) for there in by_node.values()])


def _drawn(choice: Choice, device: Device, draws: Draws) -> Draw:
    draw = draws.of(device)
    if draw is None:
        what = str(device.attributes.get(PROFILE) or ("share of a GPU" if device.shareable else "whole GPU"))
        raise Uncountable(
            choice.path,
            f"It could take {device.name} of {device.node} ({what}), which is in no pool of the flavor.",
            "Narrow it, by a profile for example, to what GET /offerings lists of the flavor.",
        )
    return _times(draw, shares(choice)) if device.shareable else draw


def _largest(draws: Sequence[Draw]) -> Draw:
    """The largest amount of each resource, whichever of them it is in."""
    names = {name for draw in draws for name in draw.amounts}
    return Draw(
        {name: max(draw.amounts.get(name, 0) for draw in draws) for name in names},
        max((draw.share for draw in draws), default=Fraction(0)),
    )


def _times(draw: Draw, count: int) -> Draw:
    return Draw({name: amount * count for name, amount in draw.amounts.items()}, draw.share * count)


def _sum(draws: Sequence[Draw]) -> Draw:
    total: Counter[str] = Counter()
    for draw in draws:
        total.update(draw.amounts)
    return Draw(dict(total), sum((draw.share for draw in draws), Fraction(0)))
