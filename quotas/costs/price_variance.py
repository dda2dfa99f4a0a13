"""What nodes cost beyond the price of their GPUs. Pure.

    cost of nodes = all GPU-hours at their price + price variance + what is left of the nodes

Price variance is what GPUs cost the platform less what their GPU-hours are charged, or would be: negative where the
price is above the cost. Without a price, nothing is charged, so all the cost is variance.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from quotas.costs.node_costs import CostPart
from quotas.costs.rating import RatedUsage


class CostLine(StrEnum):
    NODE_REST = "node_rest"
    PRICE_VARIANCE = "price_variance"
    IDLE_ADJUSTMENT = "idle_adjustment"
    IDLE_SHARED_COST = "idle_shared_cost"


Place = tuple[int, str, str]
"""A step, a cluster and a flavor."""
UNKNOWN = RatedUsage(Fraction(1), Fraction(1))
"""The lines of what was rolled up before costs of nodes were; see ``RatedUsage.cost``."""


@dataclass(frozen=True)
class PlaceCost:
    """What a part of the capacity of a place costs; ``hours`` are GPU-hours, but in the part rest."""

    place: Place
    part: CostPart
    hours: Fraction
    cost: Fraction


def lines(
    rated: Iterable[tuple[Place, RatedUsage]], costs: Iterable[PlaceCost]
) -> Iterator[tuple[Place, CostLine, RatedUsage]]:
    """Yield the lines that are not zero, given all GPU-hours at their price and what capacity costs. Both are UNKNOWN
    of a place where the GPU-hours differ.
    """
    priced: dict[Place, RatedUsage] = defaultdict(RatedUsage)
    for place, usage in rated:
        priced[place] += usage
    gpus: dict[Place, RatedUsage] = defaultdict(RatedUsage)
    rest: dict[Place, Fraction] = defaultdict(Fraction)
    for one in costs:
        if one.part == CostPart.REST:
            rest[one.place] += one.cost
        else:
            gpus[one.place] += RatedUsage(one.hours, priced_cost=one.cost)
    for place in sorted(priced.keys() | gpus.keys() | rest.keys()):
        is_known = priced[place].gpu_hours == gpus[place].gpu_hours
        variance = gpus[place].priced_cost - priced[place].priced_cost
        for line, amount in ((CostLine.PRICE_VARIANCE, variance), (CostLine.NODE_REST, rest[place])):
            if amount or not is_known:
                yield place, line, RatedUsage(priced_cost=amount) if is_known else UNKNOWN
