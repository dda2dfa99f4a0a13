"""Decides whether a node's devices can satisfy a claim, in few steps. Pure and exact.

The answer is that of the scheduler's own search (``scheduler_search``), which tries all combinations. This one does
not:

1. Equal requests for devices that serve one claim are one request for their sum.
2. Requests bound by constraints come first, then those for the largest devices.
3. Of devices that leave the same room, one is tried: GPUs with the same partitions left are alike, and so are PCIe
   roots with like GPUs. A state that failed is not searched again, in whatever order it is reached (``room``).
4. Alternatives that another one can stand for (``dominance``), and devices that the constraints exclude from the start
   (``constraint_values``), are not tried.
5. It goes back where the requests left need more of a counter than all GPUs of the node have left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from allocations.claims.constraint_values import narrowed
from allocations.claims.dominance import without_dominated
from allocations.claims.model import MAX_DEVICES
from allocations.claims.most_devices import MostDevices
from allocations.claims.node_devices import NodeDevices, Option
from allocations.claims.room import Room
from allocations.claims.scheduler_search import Steps

PREPARATION = 5
"""Steps of which the time is that of preparing a request or a constraint."""
Options = tuple[Option, ...]
Needs = list[int]


def fits(node: NodeDevices, steps: Steps) -> bool:
    """Return whether the node's devices can satisfy the claim. Raises TooLong."""
    steps.take(PREPARATION * (1 + len(node.options) + len(node.distinct)))
    node = narrowed(without_dominated(narrowed(node)))
    return all(node.options) and not _has_too_few_values(node) and _Search(node, steps).request(0)


def _has_too_few_values(node: NodeDevices) -> bool:
    """Return whether more devices must differ in an attribute than it has values."""
    for constraint, is_distinct in enumerate(node.distinct):
        bound = [options for options in node.options if all(constraint in option.constraints for option in options)]
        least = sum(min(option.count for option in options) for options in bound)
        if is_distinct and least > len(set(node.values[constraint]) - {None}):
            return True
    return False


def _merged(node: NodeDevices) -> list[Options]:
    """Return the requests, with equal ones for exclusive devices as one for their sum."""
    merged: dict[Option, int] = {}
    others: list[Options] = []
    for options in node.options:
        first = options[0]
        if len(options) > 1 or first.is_all or any(node.shareable[device] for device in first.candidates):
            others.append(options)
        else:
            like = replace(first, count=0)
            merged[like] = merged.get(like, 0) + first.count
    return others + [(replace(option, count=count),) for option, count in merged.items()]


class _Search:
    """``needs[i]`` is the least that the requests from number i on need of each counter of the node."""

    def __init__(self, node: NodeDevices, steps: Steps) -> None:
        self.node, self.steps = node, steps
        requests = _merged(node)
        self.room = Room(node, {option.candidates for options in requests for option in options})
        self.least = {id(option): self._least(option) for options in requests for option in options}
        self.requests = sorted(requests, key=self._order)
        self.needs: list[Needs] = [[0] * len(self.room.totals)]
        for options in reversed(self.requests):
            self.needs.insert(0, _sum(self.needs[0], _smallest(self._of_count(each, each.count) for each in options)))
        self.pools = self._pools()
        self.picked = 0
        self.failed: set[tuple[object, ...]] = set()

    def _pools(self) -> list[list[tuple[MostDevices, int]]]:
        """Return for the requests from each number on: sets of devices, and the least that is needed of each."""
        known: dict[frozenset[int], MostDevices] = {}
        pools: list[list[tuple[MostDevices, int]]] = [[]]
        demands: dict[frozenset[int], int] = {}
        seen: list[tuple[frozenset[int], int]] = []
        for options in reversed(self.requests):
            union = frozenset(device for option in options for device in option.candidates)
            if not any(option.admin or option.is_all for option in options) and not any(
                self.node.shareable[device] for device in union
            ):
                seen.append((union, min(option.count for option in options)))
            sets = {each for each, _ in seen} | {frozenset().union(*(each for each, _ in seen))}
            demands = {pool: sum(count for each, count in seen if each <= pool) for pool in sets}
            for pool in demands:
                if pool not in known:
                    known[pool] = MostDevices(self.node, pool, self.room.kinds)
            pools.insert(0, [(known[pool], demand) for pool, demand in demands.items()])
        return pools

    def _has_too_few(self, index: int, picked: int) -> bool:
        """Return whether the GPUs give too few devices of a set to the requests from ``index`` on, of which the first
        has ``picked`` already.
        """
        return any(
            sum(most.of(domain, state) for domain, state in enumerate(self.room.states)) < demand - picked
            for most, demand in self.pools[index]
        )

    def _order(self, options: Options) -> tuple[object, ...]:
        sizes = [
            max(
                (n / total for n, total in zip(self.least[id(o)], self.room.totals, strict=True) if total > 0),
                default=0,
            )
            for o in options
        ]
        return (
            not any(o.is_all for o in options),
            -max(len(o.constraints) for o in options),
            -min(sizes),
            len(options),
        )

    def _least(self, option: Option) -> Needs:
        return _smallest(self.room.amounts(device, option) for device in option.candidates)

    def _of_count(self, option: Option, count: int) -> Needs:
        return [count * amount for amount in self.least[id(option)]]

    def _is_too_much(self, needs: Needs) -> bool:
        return any(need > total for need, total in zip(needs, self.room.totals, strict=True) if need)

    def request(self, index: int) -> bool:
        """Return whether the requests from ``index`` on can be satisfied with what is left."""
        if index == len(self.requests):
            return True
        key = (index, self.picked, self.room.key())
        if key in self.failed:
            return False
        self.steps.take()
        for option in self.requests[index]:
            if self.picked + option.count <= MAX_DEVICES:
                fill = self._all if option.is_all else self._some
                if fill(index, option, option.count):
                    return True
        self.failed.add(key)
        return False

    def _all(self, index: int, option: Option, _count: int) -> bool:
        taken: list[int] = []
        for device in option.candidates:
            if not (self.room.fits(device, option) and self._pick(device, option)):
                break
            taken.append(device)
        if len(taken) == len(option.candidates) and self._next(index):
            return True
        for device in reversed(taken):
            self._put_back(device, option)
        return False

    def _next(self, index: int) -> bool:
        before = self.room.next_request()
        found = self.request(index + 1)
        self.room.back(before)
        return found

    def _some(self, index: int, option: Option, missing: int) -> bool:
        """Pick the ``missing`` devices of a request, then the next requests; return whether that succeeds."""
        if missing == 0:
            return self._next(index)
        key = (index, id(option), missing, self.picked, self.room.key())
        if key in self.failed:
            return False
        self.steps.take()
        needs = _sum(self.needs[index + 1], self._of_count(option, missing))
        if not self._is_too_much(needs) and not self._has_too_few(index, option.count - missing):
            for device in self.room.different(option):
                if self._pick(device, option):
                    if self._some(index, option, missing - 1):
                        return True
                    self._put_back(device, option)
        self.failed.add(key)
        return False

    def _pick(self, device: int, option: Option) -> bool:
        if not self.room.pick(device, option):
            return False
        self.picked += 1
        return True

    def _put_back(self, device: int, option: Option) -> None:
        self.picked -= 1
        self.room.put_back(device, option)


def _sum(first: Sequence[int], second: Sequence[int]) -> Needs:
    return [a + b for a, b in zip(first, second, strict=True)]


def _smallest(rows: Iterable[Sequence[int]]) -> Needs:
    return [min(column) for column in zip(*rows, strict=True)]
