"""Shares of what a month cost beyond what was rated: bills and fixed costs, by what capacity costs. Pure. Exact.

    adjustment of a cluster in a month = its bill - what its capacity costs

It is shared by cost: each GPU-hour, held or not, takes part by what a GPU-hour of its flavor cost on average in the
month, and what is left of nodes by its cost. Costs of capacity do not depend on who uses it. So a team's part tells
nothing of others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

ZERO = Fraction(0)


class Capacity(NamedTuple):
    """The GPU-hours of a flavor in a month, and what they cost."""

    gpu_hours: Fraction
    cost: Fraction

    @property
    def per_gpu_hour(self) -> Fraction:
        return self.cost / self.gpu_hours if self.gpu_hours else ZERO


@dataclass(frozen=True)
class ClusterMonth:
    """What the capacity of a cluster cost in a month, by flavor, and what was left of its nodes. ``bill`` is None if
    none was entered. ``is_known`` says whether it is rolled up, ``is_whole`` whether all of the month is recorded.
    """

    flavors: Mapping[str, Capacity]
    rest: Fraction = ZERO
    bill: Fraction | None = None
    is_known: bool = True
    is_whole: bool = True

    @property
    def cost(self) -> Fraction:
        return sum((one.cost for one in self.flavors.values()), self.rest)


@dataclass(frozen=True)
class FixedCost:
    """A cost of a month as far as it has passed; ``teams`` share it evenly, else all share it by cost. ``clusters`` are
    those whose capacity counts.
    """

    amount: Fraction
    clusters: frozenset[str]
    teams: Sequence[str] = ()


@dataclass(frozen=True)
class Factors:
    """What is added to one unit of the cost of capacity in a month: None if it cannot be known. ``even`` is by team and
    cluster.
    """

    adjustment: Mapping[str, Fraction | None] = field(default_factory=dict)
    shared: Mapping[str, Fraction | None] = field(default_factory=dict)
    even: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    unused: Fraction = ZERO


def factors(
    clusters: Mapping[str, ClusterMonth], fixed: Iterable[FixedCost], team_costs: Mapping[tuple[str, str], Fraction]
) -> Factors:
    """Return the factors of a month by cluster. ``team_costs`` is what the GPU-hours of a team cost, by team and
    cluster; what is shared evenly with a team that has none is ``unused``.
    """
    shared: dict[str, Fraction | None] = dict.fromkeys(clusters, ZERO)
    even: dict[tuple[str, str], Fraction] = {}
    unused = ZERO
    for cost in fixed:
        scope = cost.clusters & clusters.keys()
        if cost.teams:
            for team in cost.teams:
                own = sum((team_costs.get((team, cluster), ZERO) for cluster in scope), ZERO)
                part = cost.amount / len(cost.teams)
                unused += ZERO if own else part
                for cluster in scope if own else ():
                    even[team, cluster] = even.get((team, cluster), ZERO) + part / own
        else:
            factor = _factor(cost.amount, [clusters[cluster] for cluster in sorted(scope)])
            for cluster in scope:
                before = shared[cluster]
                shared[cluster] = None if before is None or factor is None else before + factor
    return Factors({name: _adjustment(one) for name, one in clusters.items()}, shared, even, unused)


def _adjustment(cluster: ClusterMonth) -> Fraction | None:
    if cluster.bill is None:
        return ZERO
    return (
        (cluster.bill - cluster.cost) / cluster.cost if cluster.is_known and cluster.is_whole and cluster.cost else None
    )


def _factor(amount: Fraction, clusters: Sequence[ClusterMonth]) -> Fraction | None:
    total = sum((cluster.cost for cluster in clusters), ZERO)
    return amount / total if total and all(cluster.is_known for cluster in clusters) else None
