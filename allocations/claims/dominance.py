"""Leaves out alternatives that are never needed, since another one of the request takes less of the same GPUs. Pure.

Of "a slice of 10 GB or of 40 GB" the first is enough to know whether a claim is possible: wherever a solution has the
larger slice, it could have the smaller one in its place.
"""

from collections import defaultdict
from dataclasses import replace

from allocations.claims.node_devices import NodeDevices, Option, replaces


def without_dominated(node: NodeDevices) -> NodeDevices:
    """Return the node with only those alternatives of each request that are no substitute for another one."""
    known: dict[tuple[Option, Option], bool] = {}

    def dominates(one: Option, other: Option) -> bool:
        if (one, other) not in known:
            known[one, other] = _dominates(node, one, other)
        return known[one, other]

    def needed(options: tuple[Option, ...]) -> tuple[Option, ...]:
        kept: list[Option] = []
        for option in dict.fromkeys(options):
            if not any(dominates(other, option) for other in kept):
                kept = [*(other for other in kept if not dominates(option, other)), option]
        return tuple(kept)

    return replace(node, options=tuple(needed(options) if len(options) > 1 else options for options in node.options))


def _dominates(node: NodeDevices, one: Option, other: Option) -> bool:
    """Return whether for each device of ``other`` there is one of ``one`` that can stand in its place."""
    if one.is_all or other.is_all or one.admin or other.admin:
        return False
    if one.count > other.count or one.taken > other.taken or not set(one.constraints) <= set(other.constraints):
        return False
    substitutes: dict[int, list[int]] = defaultdict(list)
    for device in one.candidates:
        substitutes[node.places[device].domain].append(device)
    return all(
        any(_replaces(node, one, each, device) for each in substitutes[node.places[device].domain])
        for device in other.candidates
    )


def _replaces(node: NodeDevices, option: Option, one: int, other: int) -> bool:
    return replaces(node, one, other) and all(node.values[n][one] == node.values[n][other] for n in option.constraints)
