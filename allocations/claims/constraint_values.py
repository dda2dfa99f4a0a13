"""Narrows the devices that each request may get by the constraints that match an attribute, before any is picked. Pure.

A constraint gives all devices of its requests one value of the attribute. So constraints of one attribute that have a
request in common are one constraint, and a value is possible only if each request finds enough devices that have it,
and all of them together enough of each counter.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from allocations.claims.node_devices import NodeDevices, Option

Options = tuple[Option, ...]
Least = dict[tuple[int, ...], Mapping[str, int]]
"""Candidates → the least that one of them takes of each counter."""


def narrowed(node: NodeDevices) -> NodeDevices:
    """Return the node with joined constraints, and without candidates that no solution has; a request that can get
    nothing has no options.
    """
    node = _joined(node)
    least: Least = {}
    while all(node.options):
        smaller = node
        for constraint, is_distinct in enumerate(node.distinct):
            if not is_distinct:
                smaller = _with_possible_values(smaller, constraint, least)
        if smaller == node:
            break
        node = smaller
    return node


def _joined(node: NodeDevices) -> NodeDevices:
    """Return the node with one constraint for those of one attribute that bind a request in common."""
    joined = list(range(len(node.distinct)))
    for options in node.options:
        common = set.intersection(*(set(option.constraints) for option in options)) if options else set()
        first: dict[Sequence[int | None], int] = {}
        for number in sorted(n for n in common if not node.distinct[n]):
            other = first.setdefault(node.values[number], number)
            old, new = sorted((joined[number], joined[other]), reverse=True)
            joined = [new if each == old else each for each in joined]
    return _replaced(
        node,
        lambda option: replace(option, constraints=tuple(sorted({joined[each] for each in option.constraints}))),
    )


def _with_possible_values(node: NodeDevices, constraint: int, least: Least) -> NodeDevices:
    """Return the node without candidates whose value of the constraint's attribute is not possible for all requests
    that it binds.
    """
    values = node.values[constraint]
    bound = [options for options in node.options if all(constraint in option.constraints for option in options)]
    possible = [
        value
        for value in sorted(set(values) - {None}, key=str)
        if all(any(_has_enough(option, values, value) for option in options) for options in bound)
        and not _exceeds(node, bound, values, value, least)
    ]

    def with_possible(option: Option) -> Option | None:
        if constraint not in option.constraints:
            return option
        left = tuple(device for device in option.candidates if values[device] in possible)
        if len(left) == len(option.candidates):
            return option
        return None if option.is_all else replace(option, candidates=left)

    return _replaced(node, with_possible)


def _has_enough(option: Option, values: Sequence[int | None], value: int | None) -> bool:
    return sum(values[device] == value for device in option.candidates) >= option.count


def _exceeds(
    node: NodeDevices, bound: Sequence[Options], values: Sequence[int | None], value: int | None, known: Least
) -> bool:
    """Return whether the requests need more of a counter than the GPUs with devices of this value have left."""
    free: Counter[str] = Counter()
    for domain in {node.places[device].domain for device, each in enumerate(values) if each == value}:
        for name, amount in zip(node.shapes[domain].names, node.states[domain], strict=False):
            free[name] += amount
    needs: Counter[str] = Counter()
    for options in bound:
        amounts = []
        for option in options:
            candidates = tuple(device for device in option.candidates if values[device] == value)
            if len(candidates) >= option.count:
                least = {} if option.admin else _least(node, candidates, known)
                amounts.append({name: amount * option.count for name, amount in least.items()})
        for name in set.intersection(*map(set, amounts)) if amounts else ():
            needs[name] += min(each[name] for each in amounts)
    return any(need > free[name] for name, need in needs.items())


def _least(node: NodeDevices, candidates: tuple[int, ...], known: Least) -> Mapping[str, int]:
    """Return the least that one of the candidates takes of each counter."""
    if candidates not in known:
        rows = []
        for place in {node.places[device] for device in candidates}:
            shape, amounts = node.shapes[place.domain], Counter[str]()
            for name, amount in zip(shape.names, shape.amounts[place.number], strict=True):
                amounts[name] += amount
            rows.append(amounts)
        known[candidates] = {n: min(row[n] for row in rows) for n in set.intersection(*map(set, rows))}
    return known[candidates]


def _replaced(node: NodeDevices, changed: Callable[[Option], Option | None]) -> NodeDevices:
    """Return the node with changed options, without those that are None or have too few candidates."""
    found = (tuple(map(changed, options)) for options in node.options)
    return replace(
        node,
        options=tuple(
            tuple(option for option in options if option is not None and option.count <= len(option.candidates))
            for options in found
        ),
    )
