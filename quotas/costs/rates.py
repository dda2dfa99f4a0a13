"""Reads the prices that were in force."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from portal.core.reading import Statement
from quotas.costs.models import Price
from quotas.costs.rating import Rate

NO_PRICE_YET = "EUR"
PRICES = """
    SELECT flavor.name, price.valid_from, price.per_gpu_hour::text, price.currency
    FROM costs_price AS price JOIN catalog_flavor AS flavor ON flavor.id = price.flavor_id ORDER BY price.valid_from
"""


class PriceList(NamedTuple):
    """All prices by flavor name, each flavor's in order of time, and their currency."""

    rates: dict[str, list[Rate]]
    currency: str


def by_flavor(flavors: Iterable[str] | None = None) -> dict[str, list[Rate]]:
    """Return prices by flavor name, each in order of time, in one query; of all flavors, or those given."""
    prices = Price.objects.order_by("valid_from")
    if flavors is not None:
        prices = prices.filter(flavor__name__in=set(flavors))
    found: dict[str, list[Rate]] = defaultdict(list)
    for flavor, valid_from, amount in prices.values_list("flavor__name", "valid_from", "per_gpu_hour"):
        found[flavor].append(Rate(valid_from, Fraction(amount)))
    return dict(found)


def statement() -> Statement:
    """Return what to read for `price_list`."""
    return Statement(PRICES, (), 4)


def price_list(rows: Sequence[list[Any]]) -> PriceList:
    """Return the prices in rows that were read by `statement`."""
    found: dict[str, list[Rate]] = defaultdict(list)
    for flavor, valid_from, amount, _ in rows:
        found[flavor].append(Rate(datetime.fromisoformat(valid_from), Fraction(amount)))
    return PriceList(dict(found), rows[0][-1] if rows else NO_PRICE_YET)
