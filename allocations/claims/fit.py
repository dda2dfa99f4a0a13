"""Tests whether published devices can satisfy a claim on some node, by the scheduler's own search. Pure.

Devices are tried in published order, requests and alternatives in theirs, with backtracking, as kube-scheduler's
allocator does (k8s.io/dynamic-resource-allocation, structured). After ``STEPS`` trials the answer is unknown, and the
scheduler decides. An operator's own CEL is not evaluated, so a yes may be wrong.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import groupby

from allocations.claims.matching import is_tolerated, matching, shares
from allocations.claims.model import SHARES, Choice, Claim, Constraint, Device, Request, Value
from quotas.catalog import quantities

STEPS = 20_000
ONE = "device"


class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Fleet:
    """Devices in published order. ``counters``: (node, counter set, counter) → what the card has of it. ``taken``:
    (node, device) → shares of it that claims have; one that serves a single claim counts 1."""

    devices: tuple[Device, ...]
    counters: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    taken: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def empty(self) -> "Fleet":
        """The same cards, healthy and with nothing on them."""
        return Fleet(tuple(replace(device, taints=()) for device in self.devices), self.counters)

    def nodes(self) -> list[list[Device]]:
        by_name = sorted(self.devices, key=lambda device: device.node)
        return [list(there) for _, there in groupby(by_name, key=lambda device: device.node)]


def fits(claim: Claim, fleet: Fleet) -> Answer:
    """Whether some node of the fleet, as it is given, can hold the whole claim."""
    budget = [STEPS]
    for node in fleet.nodes():
        if any(_Node(node, devices, fleet, budget).holds(claim) for devices in _alike(claim, node)):
            return Answer.YES
    return Answer.NO if budget[0] > 0 else Answer.UNKNOWN


def _alike(claim: Claim, node: list[Device]) -> list[list[Device]]:
    """The devices of a node, apart by what all that the claim asks for must have in common."""
    groups = [node]
    names = {request.name for request in claim.requests}
    for constraint in claim.constraints:
        if not constraint.distinct and (not constraint.requests or names <= set(constraint.requests)):
            groups = [part for group in groups for part in _by_value(constraint.attribute, group)]
    return groups


def _by_value(attribute: str, devices: Iterable[Device]) -> list[list[Device]]:
    parts: dict[Value, list[Device]] = defaultdict(list)
    for device in devices:
        if attribute in device.attributes:
            parts[device.attributes[attribute]].append(device)
    return list(parts.values())


Pick = tuple[Request, Choice, Device]


class _Node:
    """One trial: devices of a node to choose from, and what is left of them while the claim is filled."""

    def __init__(
        self, everything: Sequence[Device], devices: Sequence[Device], fleet: Fleet, budget: list[int]
    ) -> None:
        self.devices, self.budget = devices, budget
        self.taken: Counter[tuple[str, str]] = Counter(fleet.taken)
        self.left: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        sets = {counter_set for device in devices for counter_set, _ in device.counters}
        for (node, counter_set, name), amount in fleet.counters.items():
            if node == everything[0].node and counter_set in sets:
                self.left[counter_set, name] = quantities.value(amount)
        for device in everything:
            if self.taken[device.node, device.name] and not sets.isdisjoint(name for name, _ in device.counters):
                self._move(device, -1)
        self.picks: list[Pick] = []

    def holds(self, claim: Claim) -> bool:
        return not self._is_too_much(claim) and self._requests(claim, 0)

    def _is_too_much(self, claim: Claim) -> bool:
        """Whether the least that the requests take is more than is left, whichever cards it is on: so that what is
        plainly too much is not tried in every order."""
        left: Counter[str] = Counter({ONE: sum(not self.taken[d.node, d.name] for d in self.devices if _is_alone(d))})
        for (_, name), amount in self.left.items():
            left[name] += amount  # type: ignore[assignment]  # fractions add up as well
        least: dict[str, Fraction] = defaultdict(Fraction)
        for request in claim.requests:
            parts = [self._least(choice) for choice in request.choices]
            for name in set.intersection(*(set(part) for part in parts)):
                least[name] += min(part[name] for part in parts)
        return any(amount > left[name] for name, amount in least.items()) or self._has_too_few_values(claim)

    def _has_too_few_values(self, claim: Claim) -> bool:
        """Whether devices that are to differ in an attribute are more than the values there are of it."""
        for constraint in claim.constraints:
            bound = [r for r in claim.requests if not constraint.requests or r.name in constraint.requests]
            least = sum(min(choice.count or 1 for choice in request.choices) for request in bound)
            values = {d.attributes[constraint.attribute] for d in self.devices if constraint.attribute in d.attributes}
            if constraint.distinct and least > len(values):
                return True
        return False

    def _least(self, choice: Choice) -> dict[str, Fraction]:
        """Of each counter, and of devices without any, the least that the choice takes."""
        found = [] if choice.admin_access else [_takes(device) for device in matching(choice, self.devices)]
        if not found:
            return {}
        count = len(found) if choice.count is None else choice.count
        return {
            name: count * min(one[name] for one in found) for name in set.intersection(*(set(one) for one in found))
        }

    def _requests(self, claim: Claim, index: int) -> bool:
        if index == len(claim.requests):
            return True
        request = claim.requests[index]
        return any(self._choice(claim, index, choice) for choice in request.choices)

    def _choice(self, claim: Claim, index: int, choice: Choice) -> bool:
        candidates = matching(choice, self.devices)
        if not choice.admin_access:
            candidates = [device for device in candidates if is_tolerated(device, choice)]
        if choice.count is None:
            everything = matching(choice, self.devices)
            return (
                bool(everything)
                and len(everything) == len(candidates)
                and self._devices(claim, index, choice, candidates, 0, len(candidates))
            )
        if choice.count > len(candidates):
            return False
        return self._devices(claim, index, choice, candidates, 0, choice.count)

    def _devices(
        self, claim: Claim, index: int, choice: Choice, candidates: Sequence[Device], start: int, missing: int
    ) -> bool:
        """Fill the rest of one choice from the candidates at ``start`` and later, then the requests after it."""
        if missing == 0:
            return self._requests(claim, index + 1)
        for at in range(start, len(candidates) - missing + 1):
            device = candidates[at]
            if self.budget[0] <= 0:
                return False
            self.budget[0] -= 1
            pick = (claim.requests[index], choice, device)
            if self._is_free(device, choice) and self._agrees(claim, pick):
                self._take(pick)
                if self._devices(claim, index, choice, candidates, at + 1, missing - 1):
                    return True
                self._give_back()
            if choice.count is None:
                return False
        return False

    def _is_free(self, device: Device, choice: Choice) -> bool:
        if choice.admin_access:
            return True
        taken = self.taken[device.node, device.name]
        if device.shareable:
            return taken + shares(choice) <= quantities.value(device.capacity.get(SHARES, "0"))
        return not taken and all(
            quantities.value(amount) <= self.left[name] for name, amount in device.counters.items()
        )

    def _agrees(self, claim: Claim, pick: Pick) -> bool:
        """Whether the device agrees with those picked already, and publishes what binds them (else nothing would)."""
        request, choice, device = pick
        for constraint in claim.constraints:
            if not _concerns(constraint, request, choice):
                continue
            if constraint.attribute not in device.attributes:
                return False
            value = device.attributes[constraint.attribute]
            others = [d.attributes[constraint.attribute] for r, c, d in self.picks if _concerns(constraint, r, c)]
            if constraint.distinct and value in others:
                return False
            if not constraint.distinct and others and others[0] != value:
                return False
        return True

    def _take(self, pick: Pick) -> None:
        _, choice, device = pick
        self.picks.append(pick)
        if not choice.admin_access:
            self.taken[device.node, device.name] += shares(choice) if device.shareable else 1
            self._move(device, -1)

    def _give_back(self) -> None:
        _, choice, device = self.picks.pop()
        if not choice.admin_access:
            self.taken[device.node, device.name] -= shares(choice) if device.shareable else 1
            self._move(device, 1)

    def _move(self, device: Device, sign: int) -> None:
        for name, amount in device.counters.items():
            self.left[name] += sign * quantities.value(amount)


def _is_alone(device: Device) -> bool:
    """Whether it is one claim's at a time and shares nothing with another."""
    return not device.counters and not device.shareable


def _takes(device: Device) -> dict[str, Fraction]:
    if _is_alone(device):
        return {ONE: Fraction(1)}
    return {name: quantities.value(amount) for (_, name), amount in device.counters.items()}


def _concerns(constraint: Constraint, request: Request, choice: Choice) -> bool:
    return (
        not constraint.requests
        or request.name in constraint.requests
        or f"{request.name}/{choice.name}" in constraint.requests
    )


def max_count(claim: Claim, index: int, fleet: Fleet) -> int:
    """The largest count with which the claim's request of that index would fit, all else as it is; 0 when none does."""
    request = claim.requests[index]
    asked = max((choice.count or 1 for choice in request.choices), default=1)

    def is_held(count: int) -> bool:
        smaller = replace(request, choices=tuple(replace(choice, count=count) for choice in request.choices))
        others = (*claim.requests[:index], smaller, *claim.requests[index + 1 :])
        return fits(replace(claim, requests=others), fleet) is Answer.YES

    # The first that does not fit; before it all do.
    return bisect_left(range(1, asked), True, key=lambda count: not is_held(count))


def without(claim: Claim, dropped: Iterable[Constraint]) -> Claim:
    gone = set(dropped)
    return replace(claim, constraints=tuple(constraint for constraint in claim.constraints if constraint not in gone))


def single_requests(claim: Claim) -> Iterator[tuple[int, Claim]]:
    """Every request as a claim of its own, without what binds it to others."""
    for index, request in enumerate(claim.requests):
        yield index, replace(claim, requests=(request,), constraints=())
