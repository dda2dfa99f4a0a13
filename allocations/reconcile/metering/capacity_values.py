"""What the catalogue knows of each unit of capacity: its flavor, how many GPUs it is, and whether it is offered. Pure.

A unit by DRA is a GPU. The units of a device plugin are worth the node's GPUs together, each in proportion to the part
of a GPU that its slice is: in the layout `all-balanced`, whose slices add up to 8.57 GPUs, those of 8 GPUs are 8.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from fractions import Fraction
from math import ceil

from allocations.domain.backend_capabilities import NAMING_PATHS
from quotas.catalog.mig_tables import geometry_of
from quotas.catalog.types import Discovered, FoundOffering
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit, Value

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
    offerings = {(one.flavor, one.resource): one for one in found.offerings if one.resource}
    by_node: dict[str, dict[Unit, FoundUnit]] = defaultdict(dict)
    for unit, one in units.items():
        by_node[unit.node][unit] = one
    result: dict[Unit, Value] = {}
    for node in found.nodes:
        there = by_node.get(node.name, {})
        if not node.capacity:
            continue
        has_gpus = any(unit.kind == GPU for unit in there)
        names_devices = paths[node.flavor] in NAMING_PATHS if node.flavor else has_gpus
        own = {unit: offerings.get((node.flavor, unit.name)) for unit in there if unit.kind == RESOURCE}
        gpus = dict.fromkeys(there, Fraction(0))
        gpus |= {unit: ONE for unit in there if unit.kind == GPU} if names_devices else _gpus_per_unit(there, own)
        for unit in there:
            before = None if node.flavor else known.get(unit)
            flavor, amount = (before.flavor, before.gpus) if before else (node.flavor, gpus[unit])
            if max(amount.numerator, amount.denominator) <= MAX_TERM:
                result[unit] = Value(flavor, amount, node.flavor in offered_flavors)
    return result


def _gpus_per_unit(
    units: Mapping[Unit, FoundUnit], offerings: Mapping[Unit, FoundOffering | None]
) -> dict[Unit, Fraction]:
    """Return the GPUs that one unit of each resource is. MIG devices together are the node's GPUs that are divided."""
    parts = {unit: one.gpu_share if one else ONE for unit, one in offerings.items()}
    divided = [unit for unit, one in offerings.items() if one and one.profile]
    if not divided:
        return parts
    whole = sum((units[unit].count * parts[unit] for unit in offerings if unit not in divided), Fraction(0))
    total = sum((units[unit].count * parts[unit] for unit in divided), Fraction(0))
    gpus = _gpus(units[divided[0]]) - whole
    return parts | {unit: parts[unit] * gpus / total for unit in divided if gpus > 0}


def _gpus(one: FoundUnit) -> int:
    """Return the physical GPUs of the node as its labels say; 0 if they do not.

    With MIG by strategy `single` the label counts MIG devices, as many on each GPU as fit of the profile.
    Source: GPU feature discovery, internal/lm/mig-strategy.go.
    """
    label = str(one.labels.get("nvidia.com/gpu.count", ""))
    count = int(label) if label.isdecimal() else 0
    product, mig, profile = str(one.labels.get("nvidia.com/gpu.product", "")).removesuffix("-SHARED").partition("-MIG-")
    geometry = geometry_of(product) if mig else None
    most = next((p.max_instances for p in geometry.profiles if p.name == profile), 1) if geometry else 1
    return ceil(Fraction(count, most))
