"""Usage and its cost out of the ledger, summed by PostgreSQL.

Exact: the database adds microseconds and never multiplies by a price or a share; what it returns has one
price and one share per row, and Fractions do the rest. `rating.cost` says what must come out; a test
compares the two.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.db import connection

from portal.core.money import hours
from quotas.costs.rating import Window

KEYS = (
    *("department", "team", "project", "member", "namespace"),
    *("flavor", "offering", "kind", "allocation", "cluster", "node"),
)
UNALLOCATED = "__unallocated__"
"""OpenCost's name for what the source does not say: here, the node of a slice by device plugin."""

_QUERY = """
    WITH step AS (
        SELECT t0, t1 FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS step (t0, t1)
        WHERE t0 < %(now)s
    ),
    priced AS (
        SELECT flavor.name AS flavor, price.per_gpu_hour, price.valid_from AS t0,
               lead(price.valid_from, 1, 'infinity')
                   OVER (PARTITION BY flavor.id ORDER BY price.valid_from) AS t1
        FROM costs_price AS price JOIN catalog_flavor AS flavor ON flavor.id = price.flavor_id
    ),
    rate AS (
        SELECT flavor, per_gpu_hour, t0, t1 FROM priced
        UNION ALL SELECT flavor, 0, '-infinity', min(t0) FROM priced GROUP BY flavor
    )
    SELECT step.t0, step.t1, usage.gpu_share_numerator, usage.gpu_share_denominator,
           coalesce(rate.per_gpu_hour, 0),
           sum(usage.count * extract(epoch FROM least(usage."end", %(now)s, step.t1, rate.t1)
                                              - greatest(usage.start, step.t0, rate.t0))){columns}
    FROM metering_usageinterval AS usage
    JOIN step ON usage.start < least(step.t1, %(now)s) AND (usage."end" IS NULL OR usage."end" > step.t0)
    LEFT JOIN rate ON rate.flavor = usage.flavor
        AND rate.t0 < least(usage."end", %(now)s, step.t1) AND rate.t1 > greatest(usage.start, step.t0)
    WHERE true{conditions}
    GROUP BY step.t0, step.t1, usage.gpu_share_numerator, usage.gpu_share_denominator,
             rate.per_gpu_hour{columns}
"""


@dataclass(frozen=True)
class Sum:
    """What one group used in one window. `names` are its values of the keys asked for, in their order."""

    window: Window
    names: tuple[str, ...]
    gpu_hours: Fraction
    cost: Fraction


def sums(
    windows: Sequence[Window], keys: Sequence[str], where: Mapping[str, Collection[str]], now: datetime
) -> list[Sum]:
    """Usage until `now` in each window, by `keys` (of KEYS), in one query; groups that used nothing are
    absent.

    `where` keeps rows whose key has one of the values given: an empty collection keeps none.
    """
    columns = [_column(key) for key in keys]
    conditions = [f" AND {_column(key)} = ANY(%({key})s)" for key in where]
    query = _QUERY.format(columns="".join(f", {column}" for column in columns), conditions="".join(conditions))
    bounds: dict[str, Any] = {
        "starts": [window.start for window in windows],
        "ends": [window.end for window in windows],
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, bounds | {key: list(values) for key, values in where.items()})
        rows = cursor.fetchall()
    found: dict[tuple[Window, tuple[str, ...]], tuple[Fraction, Fraction]] = {}
    for start, end, numerator, denominator, price, seconds, *names in rows:
        used = Fraction(numerator, denominator) * hours(seconds)
        group = (Window(start, end), tuple(name or UNALLOCATED for name in names))
        before = found.get(group, (Fraction(0), Fraction(0)))
        found[group] = (before[0] + used, before[1] + used * Fraction(price))
    return [Sum(window, names, used, cost) for (window, names), (used, cost) in found.items() if used]


def _column(key: str) -> str:
    if key not in KEYS:
        raise ValueError(f"{key!r} is no key of the ledger")
    return "usage.allocation::text" if key == "allocation" else f"usage.{key}"
