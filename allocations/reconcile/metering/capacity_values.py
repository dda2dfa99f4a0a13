"""What the catalogue knows of each unit of capacity: its flavor, how many GPUs it is, and whether it is offered. Pure.

A unit by DRA is a GPU. Those of a device plugin are parts of GPUs, as discovery found on the node.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from fractions import Fraction

from allocations.domain.backend_capabilities import NAMING_PATHS
from quotas.catalog.types import Discovered
from quotas.metering.units import GPU, FoundUnit, Unit, Value

ONE = Fraction(1)
MAX_TERM = 2**31 - 1
"""The largest numerator or denominator that a column has. The labels of a node may say any number."""


def values(
    units: Mapping[Unit, FoundUnit],
    known: Mapping[Unit, Value | None],
    found: Discovered,
    offered_flavors: Collection[str],
) -> dict[Unit, Value]:
    """Return the value of each unit on a node that was found, given what is ``known`` of it.

    A node without a flavor is not offered, such as one without the taint; what is known of its units stays. A node of
    which nothing was read, such as one whose pool is being published anew, changes nothing. What a node's backend does
    not offer is no GPU beside those that it does. A unit has no value if that needs a number above MAX_TERM.
    """
    paths = {flavor.name: flavor.identity.path for flavor in found.flavors}
    by_node: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        by_node[unit.node].append(unit)
    result: dict[Unit, Value] = {}
    for node in found.nodes:
        there = by_node[node.name]
        if not node.capacity:
            continue
        has_gpus = any(unit.kind == GPU for unit in there)
        names_devices = paths[node.flavor] in NAMING_PATHS if node.flavor else has_gpus
        for unit in there:
            before = None if node.flavor else known.get(unit)
            gpus = _gpus(unit, node.gpus_per_unit, names_devices=names_devices)
            flavor, amount = (before.flavor, before.gpus) if before else (node.flavor, gpus)
            if max(amount.numerator, amount.denominator) <= MAX_TERM:
                is_offered = node.flavor in offered_flavors and unit.name not in node.withheld
                result[unit] = Value(flavor, amount, is_offered)
    return result


def _gpus(unit: Unit, gpus_per_unit: Mapping[str, Fraction], *, names_devices: bool) -> Fraction:
    """Return the GPUs that one unit is; 0 if the node's backend does not offer it."""
    if (unit.kind == GPU) != names_devices:
        return Fraction(0)
    return ONE if names_devices else gpus_per_unit.get(unit.name, ONE)
