"""Tests whether the devices of some node can satisfy a claim. Pure.

After ``MAX_STEPS`` steps the answer is unknown. Raw CEL is not evaluated, so a yes may be wrong.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby

from allocations.claims import device_search, scheduler_search
from allocations.claims.model import Claim, Device
from allocations.claims.node_devices import Node, NodeDevices
from allocations.claims.scheduler_search import Steps, TooLong

MAX_STEPS = 2_000
"""The most states that are searched for one answer and its explanation, on all nodes together; each takes about a tenth
of a millisecond.
"""


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


class Search:
    """Searches a fleet for the devices of claims, in ``MAX_STEPS`` for all of them together."""

    def __init__(self, fleet: Fleet) -> None:
        counters: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        for (node, counter_set, name), amount in fleet.counters.items():
            counters[node][counter_set, name] = amount
        self.nodes = [Node(each, counters[each[0].node], fleet.shares_in_use) for each in fleet.nodes()]
        self.steps = Steps(MAX_STEPS)

    def fits(self, claim: Claim) -> Answer:
        """Return whether the whole claim fits on some node, beside its current use."""
        try:
            fitting = any(device_search.fits(node, self.steps) for node in self._different_nodes(claim))
        except TooLong:
            return Answer.UNKNOWN
        return Answer.YES if fitting else Answer.NO

    def is_found_by_scheduler(self, claim: Claim) -> bool:
        """Return whether kube-scheduler finds devices for the claim, and has looked at all nodes, within
        ``scheduler_steps``. Those that are alike are searched once here, and each counts.
        """
        steps, found = Steps(self.scheduler_steps), False
        alike: dict[object, list[Node]] = defaultdict(list)
        for each in self.nodes:
            alike[each.signature(claim)].append(each)
        try:
            for nodes in alike.values():
                before = steps.used
                found = scheduler_search.finds(nodes[0].for_claim(claim, tried=True), steps) or found
                steps.take((steps.used - before) * (len(nodes) - 1))
        except TooLong:
            return False
        return found

    @property
    def scheduler_steps(self) -> int:
        """The most steps that the scheduler may take for a claim."""
        return max(scheduler_search.MAX_STEPS, scheduler_search.STEPS_OF_A_NODE * len(self.nodes))

    def max_count(self, claim: Claim, index: int) -> int:
        """Return the largest count of the request at ``index`` with which the claim fits; 0 if none is known to."""
        request = claim.requests[index]
        requested = max((choice.count or 1 for choice in request.choices), default=1)

        def fits_with(count: int) -> bool:
            smaller = replace(request, choices=tuple(replace(choice, count=count) for choice in request.choices))
            others = (*claim.requests[:index], smaller, *claim.requests[index + 1 :])
            return self.fits(replace(claim, requests=others)) is Answer.YES

        # The search finds the smallest count that does not fit; all smaller counts fit.
        return bisect_left(range(1, requested), True, key=lambda count: not fits_with(count))

    def _different_nodes(self, claim: Claim) -> Iterator[NodeDevices]:
        """Yield each node as the searches need it, one of those that are alike."""
        seen: set[object] = set()
        for each in self.nodes:
            if (signature := each.signature(claim)) not in seen:
                seen.add(signature)
                yield each.for_claim(claim)


def is_schedulable(claim: Claim, fleet: Fleet) -> bool:
    """Return whether kube-scheduler finds devices for the claim in few steps (``Search.is_found_by_scheduler``)."""
    return Search(fleet).is_found_by_scheduler(claim)
