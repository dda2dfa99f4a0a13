"""The strip of Home: counters that are links, what needs the person first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

TONES = ("bad", "warn", "wait", "quiet")
"""Worst first."""
LEAST_OF_ROLE = 5
"""Of a role so many counters are shown, and more only if each of them counts something."""
Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Counter(Generic[Facts]):
    """``count`` returns a number or an amount, and which of it; ``link`` the page that shows it. Of nothing, the tone
    is quiet.
    """

    name: str
    tone: str
    count: Callable[[Facts], tuple[int | str, str]]
    link: Callable[[Facts], str]


@dataclass(frozen=True)
class Tile:
    name: str
    figure: str
    note: str
    url: str
    tone: str


def tiles(counters: Iterable[Counter[Facts]], facts: Facts) -> list[Tile]:
    """Return the counters of a role, worst first."""
    found = worst_first(_tile(one, facts) for one in counters)
    return found[: max(LEAST_OF_ROLE, sum(one.tone != "quiet" for one in found))]


def joined(roles: Iterable[Sequence[Tile]]) -> list[Tile]:
    """Return the tiles of several roles, each name once, worst first."""
    by_name: dict[str, Tile] = {}
    for one in chain.from_iterable(roles):
        by_name.setdefault(one.name, one)
    return worst_first(by_name.values())


def worst_first(found: Iterable[Tile]) -> list[Tile]:
    return sorted(found, key=lambda one: TONES.index(one.tone))


def first_of(names: Sequence[str]) -> str:
    """Return ``ada``, or ``ada and 2 more``; empty if there is none."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def _tile(one: Counter[Facts], facts: Facts) -> Tile:
    count, note = one.count(facts)
    return Tile(one.name, str(count), note, one.link(facts), one.tone if count else "quiet")
