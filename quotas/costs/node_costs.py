"""What the capacity of nodes costs the platform, in parts that add up to it. Pure. Exact.

A node costs what is stated for it, else for its flavor and term. Its term is the one that a label says, else an
operator's word, else on demand. Where no cost is stated, a GPU costs the rate of its flavor.

    cost of nodes = GPUs (gpu, or rate where none is stated) + the rest of the nodes (rest)
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from quotas.costs import node_split
from quotas.costs.node_split import Weights
from quotas.costs.node_terms import Term
from quotas.costs.rating import MICROSECOND, Rates, in_force, rate_at

ZERO, ONE = Fraction(0), Fraction(1)


class CostPart(StrEnum):
    GPU = "gpu"
    RATE = "rate"
    REST = "rest"


@dataclass(frozen=True)
class UnitSpan:
    """``gpus`` of a flavor on a node in ``[start, end)``; ``end`` is None while they exist."""

    node: str
    flavor: str
    gpus: Fraction
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class NodeSpan:
    """A node in ``[start, end)``, with the term that its labels say, if they do."""

    node: str
    term: Term | None
    cpus: Fraction
    memory_gib: Fraction
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class StatedCost:
    """What an hour of a node costs from ``valid_from`` on, split by ``weights``; of a GPU if those are None."""

    valid_from: datetime
    per_hour: Fraction
    weights: Weights | None = None


@dataclass(frozen=True)
class StatedTerm:
    """What an operator says of a node from ``valid_from`` on."""

    valid_from: datetime
    term: Term


@dataclass(frozen=True)
class Stated:
    """All that is stated, each in order of time: costs by node, and by flavor and term; terms by node; rates."""

    of_nodes: Mapping[str, Sequence[StatedCost]]
    of_flavors: Mapping[tuple[str, Term], Sequence[StatedCost]]
    terms: Mapping[str, Sequence[StatedTerm]]
    rates: Rates


class Line(NamedTuple):
    """By what a cost is added up. ``price`` is that of a GPU-hour, or of a node-hour in the part rest; None is none."""

    flavor: str
    term: Term
    part: CostPart
    price: Fraction | None
    denominator: int


def lines(
    units: Iterable[UnitSpan], nodes: Iterable[NodeSpan], stated: Stated, start: datetime, end: datetime
) -> dict[Line, int]:
    """Return what capacity costs in ``[start, end)``: whole microseconds, times the denominator, by line.

    GPUs that are a part of something, such as MIG devices, count by what they are worth. What is left of a node after
    its GPUs is at two prices: its hours at its own, and its GPUs, negative, at theirs.
    """
    of_node: dict[str, tuple[list[UnitSpan], list[NodeSpan]]] = defaultdict(lambda: ([], []))
    for unit in units:
        of_node[unit.node][0].append(unit)
    for node in nodes:
        of_node[node.node][1].append(node)
    found: dict[Line, int] = defaultdict(int)
    for name, (its_units, spans) in of_node.items():
        for since, until in pairwise(_edges(name, its_units, spans, stated, start, end)):
            there = [unit for unit in its_units if _is_there(unit, since)]
            span = next((one for one in spans if _is_there(one, since)), None)
            if there or span:
                for line, amount in _moment(name, there, span, stated, since):
                    found[line] += amount * ((until - since) // MICROSECOND)
    return {line: amount for line, amount in found.items() if amount}


def _edges(
    node: str, units: Sequence[UnitSpan], spans: Sequence[NodeSpan], stated: Stated, start: datetime, end: datetime
) -> list[datetime]:
    """Return the moments of ``[start, end]`` at which something of the node may change."""
    intervals: list[UnitSpan | NodeSpan] = [*units, *spans]
    at = {moment for one in intervals for moment in (one.start, one.end or end)}
    at |= {word.valid_from for word in stated.terms.get(node, ())}
    at |= {cost.valid_from for cost in stated.of_nodes.get(node, ())}
    for flavor in {unit.flavor for unit in units}:
        at |= {rate.valid_from for rate in stated.rates.get(flavor, ())}
        at |= {cost.valid_from for term in Term for cost in stated.of_flavors.get((flavor, term), ())}
    return sorted({start, end, *(moment for moment in at if start < moment < end)})


def _moment(
    node: str, units: Sequence[UnitSpan], span: NodeSpan | None, stated: Stated, at: datetime
) -> Iterator[tuple[Line, int]]:
    """Yield what a node costs at a moment: so many of each line's price, times its denominator."""
    flavor = min((unit.flavor for unit in units if unit.flavor), default="")
    term = _term(node, span, stated, at)
    cost = in_force(stated.of_nodes.get(node, ()), at) or in_force(stated.of_flavors.get((flavor, term), ()), at)
    gpus = sum((unit.gpus for unit in units), ZERO)
    if cost is None:
        for unit in units:
            rate = rate_at(stated.rates.get(unit.flavor, ()), at)
            yield _line(unit.flavor, term, CostPart.RATE, rate, unit.gpus)
        return
    price = cost.per_hour if cost.weights is None else _price(cost.per_hour, cost.weights, span, gpus)
    for unit in units:
        yield _line(unit.flavor, term, CostPart.GPU, price, unit.gpus)
    if cost.weights is not None:
        yield _line(flavor, term, CostPart.REST, cost.per_hour, ONE)
        yield _line(flavor, term, CostPart.REST, price, -gpus)


def _price(per_node_hour: Fraction, weights: Weights, span: NodeSpan | None, gpus: Fraction) -> Fraction:
    """Return what a GPU of a node costs; a node of unknown size has GPUs alone."""
    if not gpus:
        return ZERO
    cpus, memory_gib = (span.cpus, span.memory_gib) if span else (ZERO, ZERO)
    return node_split.per_gpu_hour(per_node_hour, cpus, memory_gib, gpus, weights)


def _term(node: str, span: NodeSpan | None, stated: Stated, at: datetime) -> Term:
    if span and span.term:
        return span.term
    word = in_force(stated.terms.get(node, ()), at)
    return word.term if word else Term.ON_DEMAND


def _line(flavor: str, term: Term, part: CostPart, price: Fraction | None, gpus: Fraction) -> tuple[Line, int]:
    return Line(flavor, term, part, price, gpus.denominator), gpus.numerator


def _is_there(one: UnitSpan | NodeSpan, at: datetime) -> bool:
    return one.start <= at and (one.end is None or one.end > at)
