"""Published devices by what they publish, so that each condition is compared with each value once. Pure.

A set of devices is an integer, in which bit n stands for the n-th device.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import NamedTuple, TypeVar

from allocations.claims.matching import Comparable, comparable, conditions, is_met
from allocations.claims.model import PROFILE, Choice, Condition, Device, Value

Key = TypeVar("Key", bound=Hashable)


class Group(NamedTuple):
    """``size`` devices of a node that are alike in kind, profile and whether they serve several claims, with one of
    them.
    """

    node: str
    device: Device
    size: int


class DeviceIndex:
    """Devices in published order, and which of them meet a choice's conditions. Raw CEL, which may exclude some, is
    ignored.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices
        self._published: dict[tuple[str, bool], Mapping[Value, int]] = {}
        self._comparable: dict[tuple[str, str], Mapping[Comparable, int]] = {}
        self._matching: dict[Hashable, int] = {}

    def matching(self, choice: Choice) -> list[int]:
        """Return the numbers of the devices that are of the kind and meet all conditions, as ``matching.meets``."""
        return list(compress(range(len(self.devices)), map(int, reversed(f"{self._bits(choice):b}"))))

    def count(self, choice: Choice) -> int:
        """Return the number of matching devices."""
        return self._bits(choice).bit_count()

    def groups(self, choice: Choice) -> list[Group]:
        """Return the matching devices by node and what they count as."""
        bits = self._bits(choice)
        found = [(node, bits & members) for (node, *_), members in self._groups.items() if bits & members]
        return [Group(node, self.devices[(part & -part).bit_length() - 1], part.bit_count()) for node, part in found]

    def published(self, name: str, *, as_capacity: bool) -> Mapping[Value, int]:
        """Return the devices of each value of an attribute or capacity."""
        key = name, as_capacity
        if key not in self._published:
            values = ((d.capacity if as_capacity else d.attributes).get(name) for d in self.devices)
            self._published[key] = {value: bits for value, bits in _sets(values).items() if value is not None}
        return self._published[key]

    def _bits(self, choice: Choice) -> int:
        key = choice.device, choice.conditions, tuple(sorted(choice.capacity.items()))
        if key not in self._matching:
            bits = self._kinds.get((choice.device, True), 0)
            if not choice.capacity:
                bits |= self._kinds.get((choice.device, False), 0)
            for condition in conditions(choice):
                bits &= self._meeting(condition)
            self._matching[key] = bits
        return self._matching[key]

    def _meeting(self, condition: Condition) -> int:
        key = condition.name, condition.type
        if key not in self._comparable:
            sets: dict[Comparable, int] = defaultdict(int)
            for value, bits in self.published(condition.name, as_capacity=condition.type == "quantity").items():
                sets[comparable(value, condition.type)] |= bits
            self._comparable[key] = sets
        operands = [comparable(each, condition.type) for each in condition.values]
        found = 0
        for published, bits in self._comparable[key].items():
            if is_met(condition.operator, published, operands):
                found |= bits
        return found

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, bool], int]:
        return _sets((device.kind, device.shareable) for device in self.devices)

    @cached_property
    def _groups(self) -> Mapping[tuple[str, bool, str, Value | None], int]:
        return _sets((d.node, d.shareable, d.kind, d.attributes.get(PROFILE)) for d in self.devices)


def _sets(keys: Iterable[Key]) -> dict[Key, int]:
    """Return which devices have each key, given the keys of all devices in order."""
    found: dict[Key, int] = defaultdict(int)
    for number, key in enumerate(keys):
        found[key] |= 1 << number
    return dict(found)
