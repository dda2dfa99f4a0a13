"""What the units of a fixed MIG layout are worth: the MIG devices of a device plugin, which are counts of a node. Pure.

The larger of the compute and memory parts of a profile is its weight. The weights of a GPU's devices rarely add up to
one: those of the layout `all-balanced` to 15/14, three `2g.20gb` to 6/7. Nobody can have what is missing, so the units
of a layout are worth the GPUs that it divides, in proportion to their weights.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from quotas.catalog.geometry import UnknownDivision, instances_per_gpu
from quotas.catalog.label_agreement import physical_gpus
from quotas.catalog.layouts import is_filled
from quotas.catalog.mig_tables import geometry_of
from quotas.catalog.node_labels import PRODUCT_LABEL, STATE_LABEL, Labels
from quotas.catalog.types import NodeFact, Supply

MAX_DENOMINATOR = 2**31 - 1  # of a column in the database
ZERO = Fraction(0)


@dataclass(frozen=True)
class FixedLayout:
    """The MIG devices of a node: the physical GPUs that are divided, and the sum of the devices' weights.

    It is complete unless it is being changed, or the devices are not those of so many GPUs, such as after a failure.
    """

    gpus: Fraction
    weight: Fraction
    is_complete: bool

    @property
    def gpus_per_weight(self) -> Fraction:
        return self.gpus / self.weight if self.gpus > 0 else Fraction(1)


def of_node(node: NodeFact, supplies: Sequence[Supply]) -> FixedLayout | None:
    """Return the layout of a node's GPUs, given what its device plugin supplies; None if it has no MIG device.

    GPUs that are not divided are taken off. 0 GPUs or less are divided if the labels do not say how many there are.
    """
    counted = [supply for supply in supplies if supply.resource]
    divided = [supply for supply in counted if supply.profile]
    if not divided:
        return None
    physical = physical_gpus(node.labels, node.gpu_memory_mib) or 0
    gpus = physical - _weight(supply for supply in counted if not supply.profile)
    return FixedLayout(gpus, _weight(divided), not is_changing(node.labels) and _are_of_gpus(node, divided, gpus))


def is_changing(labels: Labels) -> bool:
    """Return whether NVIDIA's MIG manager has not succeeded on the node: its state is then `pending`, `failed`, ..."""
    return labels.get(STATE_LABEL, "") not in {"", "success"}


def mean_share(found: Sequence[tuple[FixedLayout | None, Supply]]) -> Fraction:
    """Return the GPUs that one unit of a profile is on average, so that the units of all nodes together are worth their
    GPUs. Nodes whose layout is not complete do not count; without any other it is the profile's weight.
    """
    complete = [(layout, supply) for layout, supply in found if layout and layout.is_complete]
    units = sum(supply.max_usable for _, supply in complete)
    gpus = sum((supply.max_usable * supply.gpu_share * layout.gpus_per_weight for layout, supply in complete), ZERO)
    return (gpus / units).limit_denominator(MAX_DENOMINATOR) if units else found[0][1].gpu_share


def gpus_per_unit(
    supplies: Iterable[Supply], layout: FixedLayout | None, withheld: Iterable[Supply] = ()
) -> dict[str, Fraction]:
    """Return the GPUs that one unit of each resource of a node is. Its MIG devices together are the GPUs that are
    divided, complete or not.
    """
    factor = layout.gpus_per_weight if layout else Fraction(1)
    counted = (supply for supply in supplies if supply.resource)
    worth = {supply.resource: supply.gpu_share * (factor if supply.profile else 1) for supply in counted}
    return worth | {supply.resource: supply.gpu_share for supply in withheld}


def _are_of_gpus(node: NodeFact, divided: Sequence[Supply], gpus: Fraction) -> bool:
    """Return whether the MIG devices are those of so many GPUs, divided alike, each with as many as fit. Of a GPU that
    no table lists that is known if all have one profile.
    """
    if gpus <= 0:
        return False
    per_gpu: Counter[str] = Counter()
    for supply in divided:
        number = Fraction(supply.max_usable, supply.replicas) / gpus
        if number.denominator > 1:
            return False
        per_gpu[supply.profile] += int(number)
    product, one = node.labels.get(PRODUCT_LABEL, ""), divided[0].profile
    geometry = geometry_of(product, node.gpu_memory_mib, one)
    if geometry:
        return is_filled(geometry, dict(per_gpu))
    try:
        return len(per_gpu) == 1 and per_gpu[one] == instances_per_gpu(product, one, node.gpu_memory_mib)
    except UnknownDivision:
        return len(per_gpu) == 1  # that is how it is known


def _weight(supplies: Iterable[Supply]) -> Fraction:
    return sum((supply.max_usable * supply.gpu_share for supply in supplies), ZERO)
