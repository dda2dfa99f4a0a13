"""Sums usage and cost of the ledger and its roll-ups in PostgreSQL.

Exact: the database adds microseconds and never multiplies by a price or a share; each row it returns has one price and
one share, and Fractions do the rest. A test compares the result with `rating.rated_usage`, by which hours are rolled
up.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import lcm
from operator import add
from typing import Any

from django.db import connection

from quotas.costs.rating import MICROSECONDS_PER_HOUR, RatedUsage, Window, rated
from quotas.metering import rolled_up

KEYS = (
    *("department", "team", "project", "member", "namespace"),
    *("flavor", "offering", "kind", "allocation", "cluster", "node"),
)
UNALLOCATED = "__unallocated__"
"""OpenCost's name for an unknown value: here, the node of a slice by device plugin."""

SHARED = {"department", "team", "project", "flavor", "offering", "cluster"}
"""Keys by which hours and days are added up. For others the hours of each account are read."""

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
    usage AS (
        SELECT total.*, greatest(total.start, rest.t0) AS t0, least(total."end", rest.t1) AS t1,
               %(edges)s::timestamptz[] AS edges
        FROM rest JOIN metering_usageinterval AS total
            ON total.cluster = rest.cluster AND total.start < rest.t1
            AND (total."end" IS NULL OR total."end" > rest.t0)
        WHERE TRUE{conditions}
    )
    SELECT step, total.gpu_share_numerator, total.gpu_share_denominator,
           CASE WHEN total.uncharged THEN 0 ELSE rate.per_gpu_hour END AS price,
           sum(total.count * extract(epoch FROM least(total.t1, edges[step + 1], rate.t1)
                                              - greatest(total.t0, edges[step], rate.t0))) * 1000000{columns}
    FROM usage AS total
    CROSS JOIN LATERAL generate_series(width_bucket(total.t0, edges), width_bucket(total.t1, edges)) AS step
    LEFT JOIN rate ON rate.flavor = total.flavor
        AND rate.t0 < least(total.t1, edges[step + 1]) AND rate.t1 > greatest(total.t0, edges[step])
    GROUP BY step, total.gpu_share_numerator, total.gpu_share_denominator, price{columns}
"""
_ROLLED_UP = """
    UNION ALL
    SELECT step, 1, total.denominator, total.price, sum(total.amount){columns}
    FROM {rows} WHERE total.category = 'held'{conditions}
    GROUP BY step, total.denominator, total.price{columns}
"""


@dataclass(frozen=True)
class Sum:
    """The usage of one group in one window. `names` are its values of the requested keys, in their order."""

    window: Window
    names: tuple[str, ...]
    usage: RatedUsage


def sums(
    edges: Sequence[datetime], keys: Sequence[str], where: Mapping[str, Collection[str]], now: datetime
) -> list[Sum]:
    """Return the usage until `now` by `keys` (of KEYS) in each window between two `edges`, in one query.

    `edges` are at least two moments in order. Groups without usage are absent. `where` keeps rows whose key has one of
    the values given: an empty collection keeps none. Whole hours are read from the roll-ups, unless they have changed
    since, and the rest from the ledger.
    """
    words = {
        "columns": "".join(f", {_column(key)}" for key in keys),
        "conditions": "".join(f" AND {_column(key)} = ANY(%({key})s)" for key in where),
    }
    rows = [rolled_up.DAYS, rolled_up.HOURS] if {*keys, *where} <= SHARED else [rolled_up.ACCOUNTS]
    query = _QUERY.format(pieces=rolled_up.PIECES, **words)
    query += "".join(_ROLLED_UP.format(rows=each, **words) for each in rows)
    bounds: dict[str, Any] = {"edges": list(edges), "first": edges[0], "last": min(now, edges[-1])}
    with connection.cursor() as cursor:
        cursor.execute(query, bounds | {key: list(values) for key, values in where.items()})
        fetched = cursor.fetchall()
    amounts: dict[tuple[int, tuple[str, ...]], dict[tuple[Fraction | None, int], int]] = {}
    prices: dict[Decimal | None, Fraction | None] = {None: None}
    for step, numerator, denominator, price, microseconds, *names in fetched:
        group = amounts.setdefault((step, tuple(name or UNALLOCATED for name in names)), defaultdict(int))
        if price not in prices:
            prices[price] = Fraction(price)
        group[prices[price], int(denominator)] += numerator * int(microseconds)
    found = {key: _rated(group) for key, group in amounts.items()}
    return [
        Sum(Window(edges[step - 1], edges[step]), names, usage)
        for (step, names), usage in found.items()
        if usage.gpu_hours
    ]


def _rated(amounts: Mapping[tuple[Fraction | None, int], int]) -> RatedUsage:
    """Return GPU-microseconds by price and denominator as usage. They are added as integers, since there are many."""
    base = lcm(*(denominator for _, denominator in amounts))
    by_price: dict[Fraction | None, int] = defaultdict(int)
    for (price, denominator), amount in amounts.items():
        by_price[price] += amount * (base // denominator)
    parts = (rated(Fraction(amount, base * MICROSECONDS_PER_HOUR), price) for price, amount in by_price.items())
    return reduce(add, parts)


def _column(key: str) -> str:
    if key not in KEYS:
        raise ValueError(f"{key!r} is no key of the ledger")
    return "total.holder_id::text" if key == "allocation" else f"total.{key}"
