"""Reads the prices that were in force."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from portal.core.reading import Statement, read_rows
from quotas.costs.rating import ListPrice, Rate

NO_PRICE_YET = "EUR"
PRICES = """
    SELECT flavor.name AS flavor, coalesce(offering.key, '') AS offering, price.valid_from,
           CASE WHEN offering.key IS NULL THEN price.per_gpu_hour ELSE price.per_slice_hour END::text AS amount,
           price.currency
    FROM costs_price AS price JOIN catalog_flavor AS flavor ON flavor.id = price.flavor_id
    LEFT JOIN catalog_offering AS offering ON offering.id = price.offering_id
"""
IN_ORDER = f"{PRICES} ORDER BY price.valid_from"
OF_FLAVORS = f"{PRICES} WHERE flavor.name = ANY(%s) ORDER BY price.valid_from"


class PriceRow(NamedTuple):
    """A row of PRICES; ``offering`` is empty for the price of a GPU, and ``amount`` None if it has none any more."""

    flavor: str
    offering: str
    valid_from: Any
    amount: str | None
    currency: str


class PriceList(NamedTuple):
    """All prices by flavor name, and list prices by offering, each in order of time, and their currency."""

    rates: dict[str, list[Rate]]
    currency: str
    lists: dict[str, list[ListPrice]]


def by_flavor(flavors: Iterable[str] | None = None) -> dict[str, list[Rate]]:
    """Return prices by flavor name, each in order of time, in one query; of all flavors, or those given."""
    return read(flavors).rates


def read(flavors: Iterable[str] | None = None) -> PriceList:
    """Return the prices of all flavors, or those given, and of their offerings; one query."""
    if flavors is None:
        return _listed(read_rows(IN_ORDER))
    return _listed(read_rows(OF_FLAVORS, [sorted(set(flavors))]))


def statement() -> Statement:
    """Return what to read for `price_list`."""
    return Statement(IN_ORDER, (), PriceRow._fields)


def price_list(rows: Iterable[Sequence[Any]]) -> PriceList:
    """Return the prices in rows that were read by `statement`, or the same as JSON."""
    found = (PriceRow(*row) for row in rows)
    return _listed([row._replace(valid_from=datetime.fromisoformat(row.valid_from)) for row in found])


def _listed(rows: Sequence[Any]) -> PriceList:
    found = PriceList(defaultdict(list), rows[0].currency if rows else NO_PRICE_YET, defaultdict(list))
    for row in rows:
        amount = None if row.amount is None else Fraction(row.amount)
        if row.offering:
            found.lists[row.offering].append(ListPrice(row.valid_from, amount))
        else:
            found.rates[row.flavor].append(Rate(row.valid_from, amount))
    return PriceList(dict(found.rates), found.currency, dict(found.lists))
