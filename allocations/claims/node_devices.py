"""The devices of one node as a search needs them: which of them each request may get, and what they leave of others.

Devices that share counters, such as the partitions of a GPU, are one *domain*; a device without counters is a domain of
its own. Amounts are whole numbers, scaled where a published one is not. Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from allocations.claims.device_index import DeviceIndex
from allocations.claims.matching import conditions, is_tolerated, shares
from allocations.claims.model import SHARES, Choice, Claim, Constraint, Device, Request
from quotas.catalog import quantities

EXPRESSIONS, VALUES = 4, 3
"""Expressions of CEL that are evaluated in the time of a step of the scheduler, and values compared in that of one."""
State = tuple[int, ...]
"""What a domain has left: its counters, then each device (1, its free shares, or 0), then the same for admin access."""


class Place(NamedTuple):
    """The domain of a device, and its number in it."""

    domain: int
    number: int


@dataclass(frozen=True)
class Shape:
    """What the devices of a domain take: of each its amounts of the domain's counters, which have ``names``."""

    names: tuple[str, ...]
    amounts: tuple[tuple[int, ...], ...]

    def is_free(self, state: State, number: int, option: "Option") -> bool:
        """Return whether nobody has the device, or enough shares of it are left."""
        if option.admin:
            return state[len(self.names) + len(self.amounts) + number] > 0
        return state[len(self.names) + number] >= option.taken

    def fits(self, state: State, number: int, option: "Option") -> bool:
        """Return whether the device is free, with the counters that it takes."""
        return self.is_free(state, number, option) and (
            option.admin or all(amount <= free for amount, free in zip(self.amounts[number], state, strict=False))
        )

    def after(self, state: State, number: int, option: "Option") -> State:
        """Return what is left once the device is picked."""
        counters, devices = len(self.names), len(self.amounts)
        left = list(state)
        if option.admin:
            left[counters + devices + number] -= 1
            return tuple(left)
        for index, amount in enumerate(self.amounts[number]):
            left[index] -= amount
        left[counters + number] -= option.taken
        return tuple(left)


@dataclass(frozen=True)
class Option:
    """One choice of a request on this node: ``count`` of the ``candidates``, in published order.

    ``taken`` are shares of each; ``constraints`` are the numbers of those that apply. Of ``is_all``, every candidate.
    ``steps`` is how long the scheduler takes to evaluate its expressions on a device that meets them all.
    """

    candidates: tuple[int, ...]
    count: int
    taken: int
    constraints: tuple[int, ...]
    is_all: bool
    admin: bool
    steps: float = field(default=0, compare=False)


@dataclass(frozen=True)
class NodeDevices:
    """The node's devices for one claim; ``options`` of each request are in its order, without those that it can never
    get here.

    ``devices[domain]`` are the devices of a domain by their numbers in it.
    ``values[constraint][device]`` is the number of its value of the constraint's attribute, or None.
    """

    places: tuple[Place, ...]
    devices: tuple[tuple[int, ...], ...]
    shapes: tuple[Shape, ...]
    states: tuple[State, ...]
    options: tuple[tuple[Option, ...], ...]
    values: tuple[tuple[int | None, ...], ...]
    distinct: tuple[bool, ...]
    shareable: tuple[bool, ...]


class Node:
    """A node's devices, read once for many claims. ``counters``: (counter set, counter) → amount that the GPU has."""

    def __init__(
        self,
        devices: Sequence[Device],
        counters: Mapping[tuple[str, str], str],
        shares_in_use: Mapping[tuple[str, str], int],
    ) -> None:
        domains = _domains(devices)
        places = {device: Place(at, number) for at, each in enumerate(domains) for number, device in enumerate(each)}
        self.published = DeviceIndex(devices)
        self.devices = tuple(map(tuple, domains))
        self.places = tuple(places[index] for index in range(len(devices)))
        self.shapes, self.states = zip(
            *(_domain([devices[index] for index in domain], counters, shares_in_use) for domain in domains), strict=True
        )
        self.shareable = tuple(device.shareable for device in devices)
        self.kinds = tuple((device.kind, device.taints) for device in devices)

    def signature(self, claim: Claim) -> object:
        """Return what is equal for nodes that the claim cannot tell apart: their devices leave the same, are tainted
        alike, have the same of what its conditions name, and values in the same places of what its constraints name.
        """
        named = {(each.name, each.type == "quantity") for choice in claim.choices for each in conditions(choice)}
        return (
            (self.shapes, self.states, self.places, self.shareable, self.kinds),
            tuple(
                tuple(self.published.published(name, as_capacity=as_capacity).items())
                for name, as_capacity in sorted(named)
            ),
            tuple(_values(constraint, self.published.devices) for constraint in claim.constraints),
        )

    def for_claim(self, claim: Claim, *, tried: bool = False) -> NodeDevices:
        """Return the node's devices as the searches need them for this claim. With ``tried`` options stay that have too
        few candidates here, since the scheduler finds that out only when it gets to them.
        """
        return NodeDevices(
            places=self.places,
            devices=self.devices,
            shapes=self.shapes,
            states=self.states,
            options=tuple(tuple(_options(claim, request, self.published, tried)) for request in claim.requests),
            values=tuple(_values(constraint, self.published.devices) for constraint in claim.constraints),
            distinct=tuple(constraint.distinct for constraint in claim.constraints),
            shareable=self.shareable,
        )


def _options(claim: Claim, request: Request, devices: DeviceIndex, tried: bool) -> Iterator[Option]:
    for choice in request.choices:
        matches = devices.matching(choice)
        allowed = tuple(n for n in matches if choice.admin_access or is_tolerated(devices.devices[n], choice))
        is_all = choice.count is None
        count = len(allowed) if choice.count is None else choice.count
        is_possible = allowed and count <= len(allowed) and (len(allowed) == len(matches) or not is_all)
        if is_possible or (tried and not is_all):
            numbers = [n for n, constraint in enumerate(claim.constraints) if _applies(constraint, request, choice)]
            steps = _expressions(choice) / EXPRESSIONS
            yield Option(allowed, count, shares(choice), tuple(numbers), is_all, choice.admin_access, steps)


def _expressions(choice: Choice) -> float:
    """Return how many expressions are evaluated for the choice: of its class, product and conditions, and raw ones. A
    list of values is longer than one.
    """
    values = sum(len(condition.values) - 1 for condition in choice.conditions)
    return 2 + len(choice.conditions) + len(choice.cel) + values / VALUES


def _applies(constraint: Constraint, request: Request, choice: Choice) -> bool:
    return (
        not constraint.requests
        or request.name in constraint.requests
        or f"{request.name}/{choice.name}" in constraint.requests
    )


def _values(constraint: Constraint, devices: Sequence[Device]) -> tuple[int | None, ...]:
    numbers: dict[object, int] = {}
    found = [device.attributes.get(constraint.attribute) for device in devices]
    return tuple(None if value is None else numbers.setdefault((type(value), value), len(numbers)) for value in found)


def _domains(devices: Sequence[Device]) -> list[list[int]]:
    """Return the numbers of the devices of each domain: those that share a counter set, also by way of another."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    domains: dict[object, list[int]] = defaultdict(list)
    sets = [sorted({counter_set for counter_set, _ in device.counters}) for device in devices]
    for names in sets:
        for name in names[1:]:
            root[find(name)] = find(names[0])
    for number, names in enumerate(sets):
        domains[find(names[0]) if names else number].append(number)
    return list(domains.values())


def _domain(
    devices: Sequence[Device], counters: Mapping[tuple[str, str], str], shares_in_use: Mapping[tuple[str, str], int]
) -> tuple[Shape, State]:
    keys = sorted({key for device in devices for key in device.counters})
    sets = sorted({counter_set for counter_set, _ in keys})
    amounts = [[quantities.value(device.counters.get(key, "0")) for key in keys] for device in devices]
    in_use = [shares_in_use.get((device.node, device.name), 0) for device in devices]
    left = [quantities.value(counters.get(key, "0")) for key in keys]
    for taken, used in zip(amounts, in_use, strict=True):
        if used:
            left = [free - amount for free, amount in zip(left, taken, strict=True)]
    scales = [lcm(*(value.denominator for value in column)) for column in zip(left, *amounts, strict=True)]

    def whole(row: Sequence[Fraction]) -> tuple[int, ...]:
        return tuple(value.numerator * scale // value.denominator for value, scale in zip(row, scales, strict=True))

    devices_left = [
        int(quantities.value(device.capacity.get(SHARES, "0"))) - used if device.shareable else int(not used)
        for device, used in zip(devices, in_use, strict=True)
    ]
    names = tuple(f"{sets.index(counter_set)}/{name}" for counter_set, name in keys)
    return Shape(names, tuple(map(whole, amounts))), (*whole(left), *devices_left, *(1 for _ in devices))


def replaces(node: NodeDevices, one: int, other: int) -> bool:
    """Return whether a solution that has the second device can have the first in its place: that takes no more, and
    so much that no solution has both.
    """
    if one == other:
        return True
    place, other_place = node.places[one], node.places[other]
    if place.domain != other_place.domain or node.shareable[one] or node.shareable[other]:
        return False
    shape, free = node.shapes[place.domain], node.states[place.domain]
    less, more = shape.amounts[place.number], shape.amounts[other_place.number]
    return (
        all(a <= b for a, b in zip(less, more, strict=True))
        and any(2 * a > left for a, left in zip(less, free, strict=False))
        and free[len(shape.names) + place.number] > 0
    )
