"""Filters of costs: comparisons of the values of keys, joined by "and" and "or". Pure.

``quotas.costs.filter_grammar`` reads them from text, and ``quotas.costs.columns`` makes conditions of SQL of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

UNALLOCATED = "__unallocated__"
"""OpenCost's name for an unknown value, such as the node of a slice by device plugin, or a label that is not set."""


class Operator(StrEnum):
    """How a value is compared, as OpenCost writes it."""

    EQUALS = ":"
    CONTAINS = "~:"
    STARTS_WITH = "<~:"
    ENDS_WITH = "~>:"


@dataclass(frozen=True)
class Comparison:
    """Keeps what has one of the values; if negated, what has none of them."""

    key: str
    operator: Operator
    values: Collection[str]
    is_negated: bool = False


@dataclass(frozen=True)
class And:
    """Keeps what all parts keep."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Or:
    """Keeps what any part keeps."""

    parts: tuple["Filter", ...]


Filter = Comparison | And | Or
EVERYTHING = And(())
"""The filter that keeps all."""
Where = Filter | Mapping[str, Collection[str]]
"""A filter, or {key: values to keep} for short: an empty collection keeps nothing, and an empty mapping all."""

_MATCHES: Mapping[Operator, Callable[[str, str], bool]] = {
    Operator.CONTAINS: str.__contains__,
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
}


def as_filter(where: Where) -> Filter:
    """Return the filter that is written for short."""
    if not isinstance(where, Mapping):
        return where
    return And(tuple(Comparison(key, Operator.EQUALS, kept) for key, kept in where.items()))


def both(one: Where, other: Where) -> Filter:
    """Return the filter that keeps what both keep."""
    return And((as_filter(one), as_filter(other)))


def conjuncts(where: Filter) -> list[Filter]:
    """Return the parts all of which have to keep what the filter keeps; none of one that keeps all."""
    return [one for part in where.parts for one in conjuncts(part)] if isinstance(where, And) else [where]


def beyond(where: Filter, kept: Filter) -> And | None:
    """Return what ``where`` asks of what ``kept`` keeps; None if it may keep more, as far as their forms tell."""
    asked, known = conjuncts(where), conjuncts(kept)
    return And(tuple(one for one in asked if one not in known)) if all(one in asked for one in known) else None


def keys(where: Filter) -> set[str]:
    """Return the keys that a filter compares."""
    return {comparison.key for comparison in comparisons(where)}


def comparisons(where: Filter) -> Iterator[Comparison]:
    """Yield the comparisons of a filter, from left to right."""
    if isinstance(where, Comparison):
        yield where
        return
    for part in where.parts:
        yield from comparisons(part)


def may_keep(where: Filter, values: Mapping[str, str]) -> bool:
    """Return whether the filter keeps what has these values by key, for some values of the keys that are absent."""
    match where:
        case And():
            return all(may_keep(part, values) for part in where.parts)
        case Or():
            return any(may_keep(part, values) for part in where.parts)
    if where.key not in values:
        return True
    value = values[where.key]
    if where.operator is Operator.EQUALS:  # of as many values as there are rows
        return where.is_negated != (value in where.values or (not value and UNALLOCATED in where.values))
    return where.is_negated != any(_MATCHES[where.operator](value, one) for one in where.values)


def stored(comparison: Comparison) -> Collection[str]:
    """Return the values of a comparison as the ledger has them: what is unknown is empty."""
    if comparison.operator is not Operator.EQUALS:
        return comparison.values
    return ["" if value == UNALLOCATED else value for value in comparison.values]
