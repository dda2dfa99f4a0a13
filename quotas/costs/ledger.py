"""Sums usage and cost of the ledger in PostgreSQL.

Exact: the database adds microseconds and never multiplies by a price or a share; each row it returns has one price and
one share, and Fractions do the rest. A test compares the result with `rating.rated_usage`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.db import connection

from portal.core.money import hours
from quotas.costs.rating import RatedUsage, Window, rated

KEYS = (
    *("department", "team", "project", "member", "namespace"),
    *("flavor", "offering", "kind", "allocation", "cluster", "node"),
)
UNALLOCATED = "__unallocated__"
"""OpenCost's name for an unknown value: here, the node of a slice by device plugin."""

# The steps of a row are counted by width_bucket and not joined: a join by range compares every row with every step.
# A price of NULL is none in force.
_QUERY = """
    WITH priced AS (
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
        SELECT *, greatest(start, %(first)s) AS t0, least("end", %(last)s) AS t1, %(edges)s::timestamptz[] AS edges
        FROM metering_usageinterval AS usage
        WHERE start < %(last)s AND ("end" IS NULL OR "end" > %(first)s){conditions}
    )
    SELECT step, usage.gpu_share_numerator, usage.gpu_share_denominator,
           CASE WHEN usage.uncharged THEN 0 ELSE rate.per_gpu_hour END AS price,
           sum(usage.count * extract(epoch FROM least(usage.t1, edges[step + 1], rate.t1)
                                              - greatest(usage.t0, edges[step], rate.t0))){columns}
    FROM usage
    CROSS JOIN LATERAL generate_series(width_bucket(usage.t0, edges), width_bucket(usage.t1, edges)) AS step
    LEFT JOIN rate ON rate.flavor = usage.flavor
        AND rate.t0 < least(usage.t1, edges[step + 1]) AND rate.t1 > greatest(usage.t0, edges[step])
    GROUP BY step, usage.gpu_share_numerator, usage.gpu_share_denominator, price{columns}
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
    the values given: an empty collection keeps none.
    """
    columns = [_column(key) for key in keys]
    conditions = [f" AND {_column(key)} = ANY(%({key})s)" for key in where]
    query = _QUERY.format(columns="".join(f", {column}" for column in columns), conditions="".join(conditions))
    bounds: dict[str, Any] = {"edges": list(edges), "first": edges[0], "last": min(now, edges[-1])}
    with connection.cursor() as cursor:
        cursor.execute(query, bounds | {key: list(values) for key, values in where.items()})
        rows = cursor.fetchall()
    found: dict[tuple[int, tuple[str, ...]], RatedUsage] = {}
    for step, numerator, denominator, price, seconds, *names in rows:
        usage = rated(Fraction(numerator, denominator) * hours(seconds), None if price is None else Fraction(price))
        group = (step, tuple(name or UNALLOCATED for name in names))
        found[group] = found.get(group, RatedUsage()) + usage
    return [
        Sum(Window(edges[step - 1], edges[step]), names, usage)
        for (step, names), usage in found.items()
        if usage.gpu_hours
    ]


def _column(key: str) -> str:
    if key not in KEYS:
        raise ValueError(f"{key!r} is no key of the ledger")
    return "usage.holder_id::text" if key == "allocation" else f"usage.{key}"
