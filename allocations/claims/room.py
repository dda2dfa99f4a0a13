"""What a node's devices have left during a search, and which of them are alike. Pure."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import cast

from allocations.claims.node_devices import NodeDevices, Option, State

Keys = tuple[tuple[int, ...], list[tuple[int, ...]]]
Tree = tuple[tuple[int, ...], ...]
"""For each level, coarse to fine: the number of the group that each domain is in."""


class Room:
    """The state of all domains, and the values of the constraints' attributes that were picked.

    ``used`` are the devices of the present request that serve several claims, since each may be picked once in it.
    ``totals`` is what is left of each counter on the node, summed over its domains.
    """

    def __init__(self, node: NodeDevices, candidates: Collection[tuple[int, ...]]) -> None:
        self.node = node
        self.states = list(node.states)
        self.values: list[tuple[int, ...]] = [() for _ in node.distinct]
        self.used: frozenset[int] = frozenset()
        self.devices = node.devices
        self.domain_values = [_by_domain(values, self.devices) for values in node.values]
        self.tree, structural = _tree(self.domain_values)
        self.literal = [n for n in range(len(node.distinct)) if n not in structural]
        self.structural = sorted(structural)
        self.labels: list[tuple[object, ...]] = []
        self.kinds = self._kinds(candidates)
        self.taken: dict[tuple[int, int, bool], list[int]] = {}
        self.keys: list[int | None] = [None] * len(node.states)
        self.current: Keys | None = None
        self.undo: list[tuple[State, list[int], list[int | None]]] = []
        names = sorted({name for shape in node.shapes for name in shape.names})
        self.columns = {name: index for index, name in enumerate(names)}
        self.totals = [0] * (len(names) + 2)
        for domain, shape in enumerate(node.shapes):
            for name, amount in zip(shape.names, node.states[domain], strict=False):
                self.totals[self.columns[name]] += amount
            if not shape.names:
                device = self.devices[domain][0]
                self.totals[-1 if node.shareable[device] else -2] += max(0, node.states[domain][0])
        self.interned: dict[Hashable, int] = {}
        self.fitting: dict[tuple[object, ...], list[int]] = {}
        self.crowding: dict[tuple[int, int], int] = {}

    def _kinds(self, candidates: Collection[tuple[int, ...]]) -> list[int]:
        """Return for each domain a number that is equal for domains whose devices are alike, one by one."""
        member: dict[int, list[int]] = defaultdict(list)
        for number, each in enumerate(sorted(candidates)):
            for device in each:
                member[device].append(number)
        kinds: dict[Hashable, int] = {}
        found = []
        for shape, devices in zip(self.node.shapes, self.devices, strict=True):
            labels = tuple(
                (
                    tuple(member[device]),
                    tuple(self.node.values[n][device] for n in self.literal),
                    tuple(self.node.values[n][device] is None for n in self.structural),
                    self.node.shareable[device],
                )
                for device in devices
            )
            self.labels.append(labels)
            found.append(kinds.setdefault((shape, labels), len(kinds)))
        return found

    def amounts(self, device: int, option: Option) -> list[int]:
        """Return what the device takes of each of ``totals``."""
        known = (device, option.taken, option.admin)
        if known not in self.taken:
            self.taken[known] = self._amounts(device, option)
        return self.taken[known]

    def _amounts(self, device: int, option: Option) -> list[int]:
        taken = [0] * len(self.totals)
        if option.admin:
            return taken
        place = self.node.places[device]
        shape = self.node.shapes[place.domain]
        for name, amount in zip(shape.names, shape.amounts[place.number], strict=True):
            taken[self.columns[name]] += amount
        if not shape.names:
            taken[-1 if self.node.shareable[device] else -2] = option.taken
        return taken

    def _domain_key(self, domain: int) -> int:
        if self.keys[domain] is None:
            self.keys[domain] = self._new_key(domain)
        return self.keys[domain]  # type: ignore[return-value]  # just set

    def _new_key(self, domain: int) -> int:
        marks = tuple(self.domain_values[n][domain] in self.values[n] for n in self.structural)
        used = tuple(d for d, device in enumerate(self.devices[domain]) if device in self.used) if self.used else ()
        key = (self.kinds[domain], self.states[domain], marks, used)
        return self.interned.setdefault(key, len(self.interned))

    def _keys(self) -> Keys:
        """Return the key of the node, and for each domain the keys of the groups it is in, and its own."""
        if self.current is None:
            self.current = self._new_keys()
        return self.current

    def _new_keys(self) -> Keys:
        own = [self._domain_key(domain) for domain in range(len(self.states))]
        if not self.tree:
            return tuple(sorted(own)), [(key,) for key in own]
        paths: list[tuple[int, ...]] = [(key,) for key in own]
        keys = dict(enumerate(own))
        members = {domain: [domain] for domain in keys}
        for level in reversed(self.tree):
            grouped: dict[int, list[int]] = defaultdict(list)
            for part, domains in members.items():
                grouped[level[domains[0]]].append(part)
            members = {
                group: [domain for part in parts for domain in members[part]] for group, parts in grouped.items()
            }
            keys = {
                group: self.interned.setdefault(("group", *sorted(keys[part] for part in parts)), len(self.interned))
                for group, parts in grouped.items()
            }
            for group, domains in members.items():
                for domain in domains:
                    paths[domain] = (keys[group], *paths[domain])
        return tuple(sorted(keys.values())), paths

    def next_request(self) -> tuple[frozenset[int], list[int | None]]:
        """Begin another request, which may pick devices again that serve several claims; return what ``back`` needs."""
        before = self.used, self.keys
        if self.used:
            self.current = None
            self.used, self.keys = frozenset(), [None] * len(self.keys)
        return before

    def back(self, before: tuple[frozenset[int], list[int | None]]) -> None:
        """Return to the request before."""
        self.current = None
        self.used, self.keys = before

    def key(self) -> Hashable:
        """Return what is equal for states from which the same can be picked."""
        return self._keys()[0], tuple(tuple(sorted(set(self.values[n]))) for n in self.literal)

    def different(self, option: Option) -> list[int]:
        """Return the candidates that fit, one of those that are alike, first those that leave the most to others."""
        _, paths = self._keys()
        found: list[tuple[int, int, int]] = []
        seen: set[tuple[int, ...]] = set()
        for domain, path in enumerate(paths):
            if path in seen:
                continue
            seen.add(path)
            numbers = self._fitting(option, domain, path[-1])
            found += [(len(numbers), self._crowding(domain, n), self.devices[domain][n]) for n in numbers]
        return [device for _, _, device in sorted(found)]

    def _fitting(self, option: Option, domain: int, key: int) -> list[int]:
        """Return the numbers of the domain's devices that can be picked, one of those that take the same."""
        known = (id(option), key)
        if known not in self.fitting:
            wanted = set(option.candidates)
            by_amounts: dict[object, int] = {}
            for number, device in enumerate(self.devices[domain]):
                if device in wanted and self.fits(device, option):
                    like = (self.node.shapes[domain].amounts[number], self.labels[domain][number])
                    by_amounts.setdefault(like, number)
            self.fitting[known] = list(by_amounts.values())
        return self.fitting[known]

    def _crowding(self, domain: int, number: int) -> int:
        """Return how many partitions of the GPU cannot be had beside this one."""
        known = (self.kinds[domain], number)
        if known not in self.crowding:
            shape, state = self.node.shapes[domain], self.node.states[domain]
            self.crowding[known] = sum(
                any(a + b > free for a, b, free in zip(shape.amounts[number], other, state, strict=False))
                for other in shape.amounts
            )
        return self.crowding[known]

    def fits(self, device: int, option: Option) -> bool:
        """Return whether the device can be picked, as far as its GPU has room for it."""
        place = self.node.places[device]
        return device not in self.used and self.node.shapes[place.domain].fits(
            self.states[place.domain], place.number, option
        )

    def pick(self, device: int, option: Option) -> bool:
        """Pick a device that fits; return False and change nothing if a constraint is against it."""
        for n in option.constraints:
            value = self.node.values[n][device]
            if value is None or (self.values[n] and (value in self.values[n]) == self.node.distinct[n]):
                return False
        for n in option.constraints:
            self.values[n] = (*self.values[n], cast(int, self.node.values[n][device]))
        if self.node.shareable[device]:
            self.used |= {device}
        self._change(device, option, 1)
        return True

    def put_back(self, device: int, option: Option) -> None:
        """Undo the last pick, which was of this device."""
        for n in option.constraints:
            self.values[n] = self.values[n][:-1]
        self.used -= {device}
        self._change(device, option, -1)

    def _change(self, device: int, option: Option, sign: int) -> None:
        place = self.node.places[device]
        self.current = None
        if sign > 0:
            self.undo.append((self.states[place.domain], self.totals, list(self.keys)))
            self.states[place.domain] = self.node.shapes[place.domain].after(
                self.states[place.domain], place.number, option
            )
            if any(n in self.structural for n in option.constraints):
                self.keys = [None] * len(self.keys)
            self.keys[place.domain] = None
            self.totals = [a - b for a, b in zip(self.totals, self.amounts(device, option), strict=True)]
        else:
            self.states[place.domain], self.totals, self.keys = self.undo.pop()


def _by_domain(values: Sequence[int | None], devices: Sequence[Sequence[int]]) -> list[int | None]:
    """Return the value that the devices of each domain have; -1 if they have several, None if they have none."""
    found = [{values[device] for device in domain} - {None} for domain in devices]
    return [None if not each else next(iter(each)) if len(each) == 1 else -1 for each in found]


def _tree(domain_values: Sequence[Sequence[int | None]]) -> tuple[Tree, set[int]]:
    """Return the groups of domains by the constraints' attributes, and which constraints are told by them.

    An attribute groups domains if each of them has one value, and if the groups are within those of the attributes with
    fewer values.
    """
    partitions: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, values in enumerate(domain_values):
        if -1 not in values and len(set(values)) > 1:
            numbers: dict[object, int] = {}
            partition = tuple(
                numbers.setdefault(("alone", domain) if value is None else value, len(numbers))
                for domain, value in enumerate(values)
            )
            partitions[partition].append(number)
    levels: list[tuple[int, ...]] = []
    structural: set[int] = set()
    for partition in sorted(partitions, key=lambda each: len(set(each))):
        if all(len(set(zip(partition, level, strict=True))) == len(set(partition)) for level in levels):
            levels.append(partition)
            structural |= set(partitions[partition])
    return tuple(levels), structural
