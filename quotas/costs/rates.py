"""Reads the prices that were in force."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from django.db import connection

from portal.core.reading import Statement
from quotas.costs.rating import ListPrice, Rate

NO_PRICE_YET = "EUR"
PRICES = """
    SELECT flavor.name, coalesce(offering.key, ''), price.valid_from,
           CASE WHEN offering.key IS NULL THEN price.per_gpu_hour ELSE price.per_slice_hour END::text, price.currency
    FROM costs_price AS price JOIN catalog_flavor AS flavor ON flavor.id = price.flavor_id
    LEFT JOIN catalog_offering AS offering ON offering.id = price.offering_id
"""
IN_ORDER = f"{PRICES} ORDER BY price.valid_from"
OF_FLAVORS = f"{PRICES} WHERE flavor.name = ANY(%s) ORDER BY price.valid_from"


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
    with connection.cursor() as cursor:
        if flavors is None:
            cursor.execute(IN_ORDER)
        else:
            cursor.execute(OF_FLAVORS, [sorted(set(flavors))])
        return _listed(cursor.fetchall())


def statement() -> Statement:
    """Return what to read for `price_list`."""
    return Statement(IN_ORDER, (), 5)


def price_list(rows: Sequence[list[Any]]) -> PriceList:
    """Return the prices in rows that were read by `statement`."""
    return _listed([(*row[:2], datetime.fromisoformat(row[2]), *row[3:]) for row in rows])


def _listed(rows: Sequence[Sequence[Any]]) -> PriceList:
    found = PriceList(defaultdict(list), rows[0][-1] if rows else NO_PRICE_YET, defaultdict(list))
    for flavor, offering, valid_from, text, _ in rows:
        amount = None if text is None else Fraction(text)
        if offering:
            found.lists[offering].append(ListPrice(valid_from, amount))
        else:
            found.rates[flavor].append(Rate(valid_from, amount))
    return PriceList(dict(found.rates), found.currency, dict(found.lists))
