"""Sums usage and cost of the ledger and its roll-ups in PostgreSQL.

Exact: the database adds microseconds and never multiplies by a price or a share; each row it returns has one price and
one share, and Fractions do the rest. Tests compare the result with `rating.rated_usage`, by which hours are rolled up,
and with the roll-ups.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple

from django.db import connection

from quotas.costs import columns, crowded_gpus, filters
from quotas.costs.filters import UNALLOCATED, Where
from quotas.costs.rating import MICROSECONDS_PER_HOUR, RatedUsage, Window
from quotas.metering import rolled_up

PRICE_UNITS = 10**10
"""A price has as many decimal places."""

# What is rolled up has no bounds to cut. The rest is read from the ledger, with prices of its own.
# The steps of a row are counted by width_bucket and not joined: a join by range compares every row with every step.
# A price of NULL is none in force.
_QUERY = """
    {pieces},
    priced AS (
        SELECT flavor.name AS flavor, price.per_gpu_hour, price.valid_from AS t0,
               lead(price.valid_from, 1, 'infinity')
                   OVER (PARTITION BY flavor.id ORDER BY price.valid_from) AS t1
        FROM costs_price AS price JOIN catalog_flavor AS flavor ON flavor.id = price.flavor_id
    ),
    rate AS (
        SELECT flavor, per_gpu_hour, t0, t1 FROM priced
        UNION ALL SELECT flavor, NULL, '-infinity', min(t0) FROM priced GROUP BY flavor
    ),
    {crowding},
    usage AS (
        SELECT total.*, greatest(total.start, rest.t0) AS t0, least(total."end", rest.t1) AS t1,
               %(edges)s::timestamptz[] AS edges
        FROM rest JOIN metering_usageinterval AS total
            ON total.cluster = rest.cluster AND total.start < rest.t1
            AND (total."end" IS NULL OR total."end" > rest.t0)
        WHERE NOT EXISTS (SELECT FROM crowding WHERE crowding.key = total.key){conditions}
    )
    SELECT step, total.gpu_share_denominator::text, {price},
           trunc(sum(extract(epoch FROM {until} - {begin}) * total.count * total.gpu_share_numerator) * 1000000)::text
           {columns}
    FROM usage AS total {cut}
    GROUP BY step, total.gpu_share_denominator, price{columns}
"""
_CUT = {
    "cut": """
    CROSS JOIN LATERAL generate_series(width_bucket(total.t0, edges), width_bucket(total.t1, edges)) AS step
    LEFT JOIN rate ON rate.flavor = total.flavor
        AND rate.t0 < least(total.t1, edges[step + 1]) AND rate.t1 > greatest(total.t0, edges[step])
    """,
    "begin": "greatest(total.t0, edges[step], rate.t0)",
    "until": "least(total.t1, edges[step + 1], rate.t1)",
    "price": "(CASE WHEN total.uncharged THEN 0 ELSE rate.per_gpu_hour END)::text AS price",
}
_ROLLED_UP = """
    UNION ALL
    SELECT step, total.denominator::text, total.price::text, sum(total.amount)::text{columns}
    FROM {rows} WHERE total.category = 'held'{conditions}
    GROUP BY step, total.denominator, total.price{columns}
"""


class Sum(NamedTuple):
    """The usage of one group in one window. `names` are its values of the requested keys, in their order.

    What was used, and what of it has no price, are whole numbers, of which `per_gpu_hour` are one GPU-hour. The cost
    of so many is PRICE_UNITS for each unit of the currency.
    """

    window: Window
    names: tuple[str, ...]
    used: int = 0
    unpriced: int = 0
    cost: int = 0
    per_gpu_hour: int = 1

    @property
    def is_unpriced(self) -> bool:
        """Return whether something was used, and nothing of it has a price."""
        return 0 < self.used == self.unpriced

    @property
    def usage(self) -> RatedUsage:
        """Return the same in GPU-hours and the currency."""
        hours, unpriced = Fraction(self.used, self.per_gpu_hour), Fraction(self.unpriced, self.per_gpu_hour)
        return RatedUsage(hours, unpriced, Fraction(self.cost, self.per_gpu_hour * PRICE_UNITS))


def sums(edges: Sequence[datetime], keys: Sequence[str], where: Where, now: datetime) -> list[Sum]:
    """Return the usage until `now` by `keys` (of `columns`) in each window between two `edges`, in one query.

    `edges` are at least two moments in order. Groups without usage are absent. Whole hours are read from the roll-ups,
    unless they have changed since, and the rest from the ledger.
    """
    kept = filters.as_filter(where)
    condition, parameters = columns.condition(kept)
    words = {"columns": "".join(f", {columns.column(key)}" for key in keys), "conditions": f" AND {condition}"}
    with_days = {*keys, *filters.keys(kept)} <= columns.SHARED
    rows = [rolled_up.DAYS, rolled_up.HOURS] if with_days else [rolled_up.ACCOUNTS]
    query = _QUERY.format(pieces=rolled_up.PIECES, crowding=crowded_gpus.CROWDING, **words, **_CUT)
    query += crowded_gpus.SINGLE_USES.format(**words, **_CUT)
    query += "".join(_ROLLED_UP.format(rows=each, **words) for each in rows)
    bounds = rolled_up.bounds(edges, now, with_days=with_days)
    with connection.cursor() as cursor:
        cursor.execute(query, bounds | parameters)
        return _added_up(edges, crowded_gpus.charged(cursor.fetchall()))


def total(found: Sequence[Sum], window: Window) -> Sum:
    """Return the sum of what `sums` has found."""
    used, unpriced = sum(one.used for one in found), sum(one.unpriced for one in found)
    return Sum(window, (), used, unpriced, sum(one.cost for one in found), found[0].per_gpu_hour if found else 1)


def _added_up(edges: Sequence[datetime], fetched: Sequence[tuple[Any, ...]]) -> list[Sum]:
    """Return the rows of the query by window and names.

    There are many rows, of few denominators and prices. So numbers come as text, and are multiplied up to the common
    denominator of all rows and added as integers.
    """
    scales = {row[1:3] for row in fetched}
    base = lcm(*(int(denominator) for denominator, _ in scales))
    factors = {one: (base // int(one[0]), None if one[1] is None else _price_units(one[1])) for one in scales}
    windows = [Window(*bounds) for bounds in pairwise(edges)]
    found: dict[tuple[Any, ...], Sum] = {}
    for row in fetched:
        factor, price = factors[row[1:3]]
        used = int(row[3]) * factor
        unpriced, cost = (used, 0) if price is None else (0, used * price)
        key = row[:1] + row[4:]
        if known := found.get(key):
            used, unpriced, cost = used + known.used, unpriced + known.unpriced, cost + known.cost
        if used:
            names = row[4:] if "" not in row else tuple(name or UNALLOCATED for name in row[4:])
            found[key] = Sum(windows[row[0] - 1], names, used, unpriced, cost, base * MICROSECONDS_PER_HOUR)
    return list(found.values())


def _price_units(price: str) -> int:
    return int(Decimal(price) * PRICE_UNITS)
