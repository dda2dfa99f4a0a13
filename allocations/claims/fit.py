"""Tests whether the devices of some node can satisfy a claim, by the search that the scheduler uses. Pure.

Devices, requests and alternatives are tried in order with backtracking, as in kube-scheduler's allocator
(k8s.io/dynamic-resource-allocation, structured). After ``MAX_STEPS`` steps the answer is unknown, and the scheduler
decides. Raw CEL is not evaluated, so a yes may be wrong.
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

MAX_STEPS = 20_000
DEVICE = "device"
"""Name by which devices without counters are counted."""


class Answer(StrEnum):
    """Whether a claim fits; unknown if the search was too long."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Fleet:
    """Devices in published order, with their use.

    ``counters``: (node, counter set, counter) → amount that the GPU has. ``shares_in_use``: (node, device) → shares
    allocated to claims; a device that serves a single claim counts as 1.
    """

    devices: tuple[Device, ...]
    counters: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    shares_in_use: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def empty(self) -> "Fleet":
        """Return the same devices, healthy and unused."""
        return Fleet(tuple(replace(device, taints=()) for device in self.devices), self.counters)

    def nodes(self) -> list[list[Device]]:
        """Return the devices of each node, sorted by node name."""
        by_name = sorted(self.devices, key=lambda device: device.node)
        return [list(devices) for _, devices in groupby(by_name, key=lambda device: device.node)]


def fits(claim: Claim, fleet: Fleet) -> Answer:
    """Return whether the whole claim fits on some node of the fleet, beside its current use."""
    budget = [MAX_STEPS]
    for node in fleet.nodes():
        if any(_Trial(node, devices, fleet, budget).fits(claim) for devices in _groups(claim, node)):
            return Answer.YES
    return Answer.NO if budget[0] > 0 else Answer.UNKNOWN


def _groups(claim: Claim, node: list[Device]) -> list[list[Device]]:
    """Return the devices of a node, grouped by attributes whose value must be equal for all requests of the claim."""
    groups = [node]
    names = {request.name for request in claim.requests}
    for constraint in claim.constraints:
        if not constraint.distinct and (not constraint.requests or names <= set(constraint.requests)):
            groups = [subgroup for group in groups for subgroup in _by_value(constraint.attribute, group)]
    return groups


def _by_value(attribute: str, devices: Iterable[Device]) -> list[list[Device]]:
    groups: dict[Value, list[Device]] = defaultdict(list)
    for device in devices:
        if attribute in device.attributes:
            groups[device.attributes[attribute]].append(device)
    return list(groups.values())


Pick = tuple[Request, Choice, Device]


class _Trial:
    """One search on a node: the devices to choose from, and their state while devices are chosen for the claim."""

    def __init__(
        self, node_devices: Sequence[Device], devices: Sequence[Device], fleet: Fleet, budget: list[int]
    ) -> None:
        self.devices, self.budget = devices, budget
        self.shares_in_use: Counter[tuple[str, str]] = Counter(fleet.shares_in_use)
        self.free_counters: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        sets = {counter_set for device in devices for counter_set, _ in device.counters}
        for (node, counter_set, name), amount in fleet.counters.items():
            if node == node_devices[0].node and counter_set in sets:
                self.free_counters[counter_set, name] = quantities.value(amount)
        for device in node_devices:
            if self.shares_in_use[device.node, device.name] and not sets.isdisjoint(
                name for name, _ in device.counters
            ):
                self._change_counters(device, -1)
        self.picks: list[Pick] = []

    def fits(self, claim: Claim) -> bool:
        return not self._exceeds_total(claim) and self._fill_requests(claim, 0)

    def _exceeds_total(self, claim: Claim) -> bool:
        """Return whether the requests need more in total than is free, so that no order of choices has to be tried."""
        free: Counter[str] = Counter(
            {DEVICE: sum(not self.shares_in_use[d.node, d.name] for d in self.devices if _is_exclusive(d))}
        )
        for (_, name), amount in self.free_counters.items():
            free[name] += amount  # type: ignore[assignment]  # fractions add up as well
        least: dict[str, Fraction] = defaultdict(Fraction)
        for request in claim.requests:
            amounts = [self._least(choice) for choice in request.choices]
            for name in set.intersection(*(set(each) for each in amounts)):
                least[name] += min(each[name] for each in amounts)
        return any(amount > free[name] for name, amount in least.items()) or self._has_too_few_values(claim)

    def _has_too_few_values(self, claim: Claim) -> bool:
        """Return whether more devices must differ in an attribute than it has values."""
        for constraint in claim.constraints:
            requests = [r for r in claim.requests if not constraint.requests or r.name in constraint.requests]
            least = sum(min(choice.count or 1 for choice in request.choices) for request in requests)
            values = {d.attributes[constraint.attribute] for d in self.devices if constraint.attribute in d.attributes}
            if constraint.distinct and least > len(values):
                return True
        return False

    def _least(self, choice: Choice) -> dict[str, Fraction]:
        """Return the least amount of each counter, and of devices without counters, that the choice needs."""
        amounts = [] if choice.admin_access else [_amounts(device) for device in matching(choice, self.devices)]
        if not amounts:
            return {}
        count = len(amounts) if choice.count is None else choice.count
        names = set.intersection(*(set(each) for each in amounts))
        return {name: count * min(each[name] for each in amounts) for name in names}

    def _fill_requests(self, claim: Claim, index: int) -> bool:
        if index == len(claim.requests):
            return True
        request = claim.requests[index]
        return any(self._fill_choice(claim, index, choice) for choice in request.choices)

    def _fill_choice(self, claim: Claim, index: int, choice: Choice) -> bool:
        candidates = matching(choice, self.devices)
        if not choice.admin_access:
            candidates = [device for device in candidates if is_tolerated(device, choice)]
        if choice.count is None:
            matches = matching(choice, self.devices)
            return (
                bool(matches)
                and len(matches) == len(candidates)
                and self._fill_devices(claim, index, choice, candidates, 0, len(candidates))
            )
        if choice.count > len(candidates):
            return False
        return self._fill_devices(claim, index, choice, candidates, 0, choice.count)

    def _fill_devices(
        self, claim: Claim, index: int, choice: Choice, candidates: Sequence[Device], start: int, missing: int
    ) -> bool:
        """Choose the ``missing`` devices of a choice from the candidates at ``start`` and later, then fill the next
        requests; return whether that succeeds."""
        if missing == 0:
            return self._fill_requests(claim, index + 1)
        for position in range(start, len(candidates) - missing + 1):
            device = candidates[position]
            if self.budget[0] <= 0:
                return False
            self.budget[0] -= 1
            pick = (claim.requests[index], choice, device)
            if self._is_free(device, choice) and self._meets_constraints(claim, pick):
                self._allocate(pick)
                if self._fill_devices(claim, index, choice, candidates, position + 1, missing - 1):
                    return True
                self._deallocate()
            if choice.count is None:
                return False
        return False

    def _is_free(self, device: Device, choice: Choice) -> bool:
        if choice.admin_access:
            return True
        used = self.shares_in_use[device.node, device.name]
        if device.shareable:
            return used + shares(choice) <= quantities.value(device.capacity.get(SHARES, "0"))
        return not used and all(
            quantities.value(amount) <= self.free_counters[name] for name, amount in device.counters.items()
        )

    def _meets_constraints(self, claim: Claim, pick: Pick) -> bool:
        """Return whether the device meets the constraints with those chosen before, and has the attributes for it."""
        request, choice, device = pick
        for constraint in claim.constraints:
            if not _applies(constraint, request, choice):
                continue
            if constraint.attribute not in device.attributes:
                return False
            value = device.attributes[constraint.attribute]
            others = [d.attributes[constraint.attribute] for r, c, d in self.picks if _applies(constraint, r, c)]
            if constraint.distinct and value in others:
                return False
            if not constraint.distinct and others and others[0] != value:
                return False
        return True

    def _allocate(self, pick: Pick) -> None:
        _, choice, device = pick
        self.picks.append(pick)
        if not choice.admin_access:
            self.shares_in_use[device.node, device.name] += shares(choice) if device.shareable else 1
            self._change_counters(device, -1)

    def _deallocate(self) -> None:
        _, choice, device = self.picks.pop()
        if not choice.admin_access:
            self.shares_in_use[device.node, device.name] -= shares(choice) if device.shareable else 1
            self._change_counters(device, 1)

    def _change_counters(self, device: Device, sign: int) -> None:
        for name, amount in device.counters.items():
            self.free_counters[name] += sign * quantities.value(amount)


def _is_exclusive(device: Device) -> bool:
    """Return whether the device serves one claim at a time and shares no counters with other devices."""
    return not device.counters and not device.shareable


def _amounts(device: Device) -> dict[str, Fraction]:
    if _is_exclusive(device):
        return {DEVICE: Fraction(1)}
    return {name: quantities.value(amount) for (_, name), amount in device.counters.items()}


def _applies(constraint: Constraint, request: Request, choice: Choice) -> bool:
    return (
        not constraint.requests
        or request.name in constraint.requests
        or f"{request.name}/{choice.name}" in constraint.requests
    )


def max_count(claim: Claim, index: int, fleet: Fleet) -> int:
    """Return the largest count of the request at ``index`` with which the claim fits; 0 if none does."""
    request = claim.requests[index]
    requested = max((choice.count or 1 for choice in request.choices), default=1)

    def fits_with(count: int) -> bool:
        smaller = replace(request, choices=tuple(replace(choice, count=count) for choice in request.choices))
        others = (*claim.requests[:index], smaller, *claim.requests[index + 1 :])
        return fits(replace(claim, requests=others), fleet) is Answer.YES

    # The search finds the smallest count that does not fit; all smaller counts fit.
    return bisect_left(range(1, requested), True, key=lambda count: not fits_with(count))


def without(claim: Claim, constraints: Iterable[Constraint]) -> Claim:
    """Return the claim without these constraints."""
    dropped = set(constraints)
    return replace(claim, constraints=tuple(each for each in claim.constraints if each not in dropped))


def single_requests(claim: Claim) -> Iterator[tuple[int, Claim]]:
    """Yield each request by its index as a claim of its own, without constraints."""
    for index, request in enumerate(claim.requests):
        yield index, replace(claim, requests=(request,), constraints=())
