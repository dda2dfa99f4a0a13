"""Leaves out what a node says that no column has room for, so that one odd node does not keep others from being read.

A node may be labelled with any number and publish any amount. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quotas.catalog.node_labels import COUNT_LABEL
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.types import NodeFact, Supply

MAX_NUMBER = 2**31 - 1
MAX_UNITS = 1_000_000
"""Units of one pool on one node: a pod may ask for any number, and the sum over all nodes needs room in a column."""
MAX_PROFILE, MAX_RESOURCE, MAX_SHOWN = 40, 63, 20
NUMBERS = (".memory", ".count", ".major", ".minor")
"""How labels end that are numbers and may be absent. Without those of replicas a share would count as a whole GPU, and
without `gpu.count` any number of units (`label_agreement`).
"""


def node(given: NodeFact) -> tuple[NodeFact, Sequence[str]]:
    """Return the node without impossible numbers, and a sentence for each."""
    problems: list[str] = []
    labels = dict(given.labels)
    for name, value in sorted(given.labels.items()):
        if name != COUNT_LABEL and name.endswith(NUMBERS) and value.isdecimal() and _is_impossible(value):
            problems.append(f"the label {name} is {_shown(value)}, which cannot be, so it counts as absent")
            del labels[name]
    capacity = dict(given.capacity)
    for name, amount in sorted(given.capacity.items()):
        if amount > MAX_NUMBER:
            problems.append(f"it has {_shown(str(amount))} {name}, which cannot be, so they count as absent")
            del capacity[name]
    gives = given.gives
    if max(gives.cpu_millicores, gives.memory_mib, gives.pods) > MAX_NUMBER:
        problems.append("its allocatable CPU, memory or pods cannot be so many, so they count as unknown")
        gives = NodeShare()
    return replace(given, labels=labels, capacity=capacity, gives=gives), problems


def used_units(given: Mapping[str, int]) -> dict[str, int]:
    """Return the units of a node that are used, by pool, none above MAX_UNITS."""
    return {pool: min(count, MAX_UNITS) for pool, count in given.items()}


def supplies(given: Sequence[Supply]) -> tuple[tuple[Supply, ...], Sequence[str]]:
    """Return the supplies that a column has room for, and a sentence for each other one."""
    fits = [one for one in given if _has_room(one)]
    problems = [
        f"its {one.resource or one.pool} has a number of replicas, an amount or a name that cannot be, so it is not "
        "offered; check the labels that GPU feature discovery writes"
        for one in given
        if one not in fits
    ]
    return tuple(fits), problems


def _has_room(one: Supply) -> bool:
    shares = (one.gpu_share, one.memory_part)
    numbers = (one.replicas, one.memory_mib, one.max_usable, *(share.denominator for share in shares))
    is_part = all(0 < share <= 1 for share in shares)
    return (
        is_part and max(numbers) <= MAX_NUMBER and len(one.profile) <= MAX_PROFILE and len(one.resource) <= MAX_RESOURCE
    )


def _is_impossible(digits: str) -> bool:
    return len(digits) > len(str(MAX_NUMBER)) or int(digits) > MAX_NUMBER


def _shown(number: str) -> str:
    return number if len(number) <= MAX_SHOWN else f"{number[:MAX_SHOWN]}…"
