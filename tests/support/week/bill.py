"""What a week costs by the second calculation: the GPU-hours of each hour times the price of that hour.

It shares no code with the portal. Prices change when an hour begins.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.support.week.plan import NEW_PRICES, PRICES, PRICES_CHANGE, WEEK_HOURS

NO_VALUE = "__unallocated__"
Names = Mapping[str, str]
"""The value of each key of the ledger."""


class Amount(NamedTuple):
    """GPU-hours, those of them without a price, and the cost of the others."""

    hours: Fraction = Fraction(0)
    unpriced: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)

    @property
    def is_unpriced(self) -> bool:
        return bool(self.hours) and self.hours == self.unpriced


def amount(flavor: str, hours: Sequence[Fraction], which: Iterable[int] = range(WEEK_HOURS)) -> Amount:
    """Return the amount of these hours of the week."""
    total, unpriced, cost = Fraction(0), Fraction(0), Fraction(0)
    for hour in which:
        if hours[hour]:
            price = (PRICES if hour < PRICES_CHANGE else NEW_PRICES).get(flavor)
            total += hours[hour]
            if price is None:
                unpriced += hours[hour]
            else:
                cost += hours[hour] * Fraction(price)
    return Amount(total, unpriced, cost)


def add(amounts: Iterable[Amount]) -> Amount:
    """Return the sum."""
    found = list(amounts)
    return Amount(*(sum(each, Fraction(0)) for each in zip(*found, strict=True))) if found else Amount()


def by_keys(
    held: Mapping[int, Sequence[Fraction]],
    holders: Mapping[int, Names],
    keys: Sequence[str],
    steps: Sequence[range],
    where: Mapping[str, Iterable[str]] | None = None,
) -> dict[tuple[int, tuple[str, ...]], Amount]:
    """Return the amounts of each step, some hours of the week, by the values of the keys; none of zero. ``where`` keeps
    holders whose key has one of the values.
    """
    found: dict[tuple[int, tuple[str, ...]], list[Amount]] = defaultdict(list)
    for number, hours in held.items():
        names = holders[number]
        if all(names[key] in values for key, values in (where or {}).items()):
            for step, which in enumerate(steps):
                group = step, tuple(names[key] or NO_VALUE for key in keys)
                found[group].append(amount(names["gpu"], hours, which))
    added = {group: add(each) for group, each in found.items()}
    return {group: one for group, one in added.items() if one.hours}
