"""Filters of costs as chips, and addresses with one comparison more or less."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_names import UNKNOWN_WORD, key_word
from quotas.costs import filter_grammar
from quotas.costs.filters import EVERYTHING, UNALLOCATED, And, Comparison, Filter, Operator

WORDS = {
    (Operator.EQUALS, False): "is",
    (Operator.EQUALS, True): "is not",
    (Operator.CONTAINS, False): "contains",
    (Operator.CONTAINS, True): "does not contain",
    (Operator.STARTS_WITH, False): "begins with",
    (Operator.STARTS_WITH, True): "does not begin with",
    (Operator.ENDS_WITH, False): "ends with",
    (Operator.ENDS_WITH, True): "does not end with",
}
OPERATORS = {f"{'!' if negated else ''}{operator.value}": word for (operator, negated), word in WORDS.items()}
"""How a comparison is written, and in words."""


@dataclass(frozen=True)
class Chip:
    """A part of the filter in words, and the address of the page without it."""

    text: str
    without: str


def parts(where: Filter) -> tuple[Filter, ...]:
    """Return what a filter joins by "and"; nothing of one that keeps all."""
    return where.parts if isinstance(where, And) else (where,)


def chips(where: Filter, address: CostsAddress) -> list[Chip]:
    """Return a chip for each part of the filter."""
    every = parts(where)
    found = []
    for place, part in enumerate(every):
        words = comparison_words(part) if isinstance(part, Comparison) else filter_grammar.text(part)
        found.append(Chip(words, address.page(filter=_joined(every[:place] + every[place + 1 :]))))
    return found


def comparison_words(one: Comparison) -> str:
    """Return ``Team is vision or language``."""
    values = [UNKNOWN_WORD if value == UNALLOCATED else value for value in one.values]
    return f"{key_word(one.key)} {WORDS[one.operator, one.is_negated]} {' or '.join(values)}"


def with_comparison(where: Filter, added: Comparison) -> str:
    """Return the text of the filter with one comparison more. Raises ValueError for a value with a quotation mark."""
    return _joined((*parts(where), added))


def narrowed(where: Filter, values: Sequence[tuple[str, str]]) -> str:
    """Return the text of the filter that keeps only these values by key. They replace what is compared with "is"."""
    keys = {key for key, _ in values}
    kept = [part for part in parts(where) if not (_is_equality(part) and part.key in keys)]
    return _joined((*kept, *(Comparison(key, Operator.EQUALS, (value,)) for key, value in values)))


def costs_of(address: CostsAddress, values: Sequence[tuple[str, str]], by: str = "allocation") -> str:
    """Return the address of the page of costs for these values by key alone; empty if no filter can name them."""
    try:
        where = narrowed(EVERYTHING, values)
    except ValueError:  # a quotation mark in a name
        return ""
    return address.page(aggregate=by, filter=where)


def fixed_keys(where: Filter) -> set[str]:
    """Return the keys that have one value in all that the filter keeps."""
    return {part.key for part in parts(where) if _is_equality(part) and len(part.values) == 1}


def mine(where: Filter, address: CostsAddress, username: str) -> tuple[bool, str]:
    """Return whether the view is of what the person uses, and the address of the page that changes that; empty if no
    filter can name the person.
    """
    own = Comparison("member", Operator.EQUALS, (username,))
    others = tuple(part for part in parts(where) if part != own)
    if len(others) < len(parts(where)):
        return True, address.page(filter=_joined(others))
    try:
        return False, address.page(filter=narrowed(where, [("member", username)]))
    except ValueError:  # a quotation mark in the name
        return False, ""


def title(where: Filter, username: str, by: str, *, sees_all: bool) -> str:
    """Return of whom the costs are, and by what: ``Costs of team vision by person``."""
    values = {
        part.key: next(iter(part.values)) for part in parts(where) if _is_equality(part) and len(part.values) == 1
    }
    if "member" in values:
        whose = "Your costs" if values["member"] == username else f"Costs of {values['member']}"
    else:
        named = [f"{key} {values[key]}" for key in ("allocation", "project", "team", "department") if key in values]
        whose = f"Costs of {[*named, 'all teams' if sees_all else 'your teams'][0]}"
    return f"{whose} by {by}" if by else whose


def _joined(parts_: tuple[Filter, ...] | list[Filter]) -> str:
    return filter_grammar.text(And(tuple(parts_)) if len(parts_) != 1 else parts_[0])


def _is_equality(part: Filter) -> TypeGuard[Comparison]:
    return isinstance(part, Comparison) and part.operator is Operator.EQUALS and not part.is_negated
