"""Follows the search of kube-scheduler for a claim's devices on a node, and counts its steps. Pure.

The scheduler tries requests, alternatives and devices in their order, goes back where it is stuck, and leaves no
combination out. Within a request it never goes back to an earlier device; between equal requests it tries all orders.
So a claim that does not fit, or only just, can take it as long as its deadline of ten seconds, and other pods wait.
It evaluates the expressions of a request on each device that it comes by, once on each, which takes long where there
are many of these. And it searches every node, those that are alike too.
Source: k8s.io/dynamic-resource-allocation 0.36, structured, allocateOne and isSelectable.
"""

from collections import Counter

from allocations.claims.model import MAX_DEVICES
from allocations.claims.node_devices import NodeDevices, Option

MAX_STEPS = 10_000
"""The most steps that the scheduler may take for a claim on all nodes together: some tenths of a second of it."""
STEPS_OF_A_NODE = 500
"""What it may take on each node all the same, so that a large fleet has no claim refused that is found at once."""


class TooLong(Exception):
    """The search takes more steps than allowed."""


class Steps:
    """A count of steps that must not exceed ``limit``."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0.0

    def take(self, steps: float = 1) -> None:
        """Count steps. Raises TooLong."""
        self.used += steps
        if self.used > self.limit:
            self.used = self.limit + 1
            raise TooLong


def finds(node: NodeDevices, steps: Steps) -> bool:
    """Return whether the scheduler finds devices for the whole claim on the node, given with all options that it tries
    (``Node.for_claim``). Raises TooLong.
    """
    return _Search(node, steps).request(0)


class _Search:
    def __init__(self, node: NodeDevices, steps: Steps) -> None:
        self.node, self.steps = node, steps
        self.states = list(node.states)
        self.values: list[list[int]] = [[] for _ in node.distinct]
        self.picked = 0
        self.evaluated: Counter[int] = Counter()
        for option in (each for options in node.options for each in options if each.is_all):
            self.evaluate(option, len(node.places))

    def evaluate(self, option: Option, end: int) -> None:
        """Count the expressions of a request on the devices before number ``end``, as far as it has not been done."""
        if (new := end - self.evaluated[id(option)]) > 0:
            self.steps.take(new * option.steps)
            self.evaluated[id(option)] = end

    def request(self, index: int) -> bool:
        if index == len(self.node.options):
            return True
        self.steps.take()
        return any(
            self.picked + option.count <= MAX_DEVICES and self.devices(index, option, 0, option.count)
            for option in self.node.options[index]
        )

    def devices(self, index: int, option: Option, start: int, missing: int) -> bool:
        """Pick the ``missing`` devices of a request from the candidates at ``start`` and later, then the next requests;
        return whether that succeeds."""
        if missing == 0:
            return self.request(index + 1)
        for position in range(start, len(option.candidates)):
            device = option.candidates[position]
            self.evaluate(option, device + 1)
            place = self.node.places[device]
            before, shape = self.states[place.domain], self.node.shapes[place.domain]
            if shape.is_free(before, place.number, option):
                self.steps.take()
                if shape.fits(before, place.number, option) and self.meets_constraints(option, device):
                    self.states[place.domain] = shape.after(before, place.number, option)
                    self.add(option, device)
                    if self.devices(index, option, position + 1, missing - 1):
                        return True
                    self.remove(option)
                    self.states[place.domain] = before
            if option.is_all:
                return False
        self.evaluate(option, len(self.node.places))
        return False

    def meets_constraints(self, option: Option, device: int) -> bool:
        for constraint in option.constraints:
            value, values = self.node.values[constraint][device], self.values[constraint]
            if value is None or (values and (value in values) == self.node.distinct[constraint]):
                return False
        return True

    def add(self, option: Option, device: int) -> None:
        self.picked += 1
        for constraint in option.constraints:
            value = self.node.values[constraint][device]
            assert value is not None
            self.values[constraint].append(value)

    def remove(self, option: Option) -> None:
        self.picked -= 1
        for constraint in option.constraints:
            self.values[constraint].pop()
