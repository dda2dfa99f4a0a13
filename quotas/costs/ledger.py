"""Sums usage and cost of the ledger and its roll-ups.

Exact: the database adds microseconds, and never multiplies by a price or a share. A row of the roll-ups has its price.
What is read from the ledger is cut at each moment at which a price begins, and has the price that `rating.by_price`
says, as when it is rolled up.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple

from django.db import connection

from portal.core import reading
from quotas.costs import columns, crowded_gpus, filters, rates, rating
from quotas.costs.crowded_gpus import Row
from quotas.costs.filters import UNALLOCATED, Where
from quotas.costs.rating import MICROSECONDS_PER_HOUR, PRICE_UNITS, RatedUsage, Window
from quotas.metering import rolled_up

# What is rolled up has no bounds to cut. The rest is read from the ledger, by what its price depends on, with the cut
# in place of the step; the row of cut 0 has the moments of all cuts, and all prices.
# The cuts of an interval are counted by width_bucket and not joined: a join by range compares every row with every cut.
# OFFSET 0 has each piece of the rest look for its intervals, as in `rolled_up`.
# No use is looked for before the first one: by an index on the end every interval would be found.
_QUERY = """
    {pieces},
    cuts AS (
        SELECT array_agg(moment ORDER BY moment) AS moments FROM (
            SELECT unnest(%(edges)s::timestamptz[]) AS moment UNION SELECT valid_from FROM costs_price
        ) AS edge_or_price
    ),
    began AS (
        SELECT cluster, t1, greatest(t0, (
            SELECT start FROM metering_usageinterval AS one WHERE one.cluster = rest.cluster ORDER BY start LIMIT 1
        )) AS t0
        FROM rest
    ),
    used_rest AS MATERIALIZED (SELECT cluster, t0, t1 FROM began WHERE t0 < t1),
    {crowding},
    usage AS (
        SELECT total.*, greatest(total.start, rest.t0) AS t0, least(total."end", rest.t1) AS t1,
               (SELECT moments FROM cuts) AS cuts
        FROM used_rest AS rest CROSS JOIN LATERAL (
            SELECT * FROM metering_usageinterval AS total
            WHERE total.cluster = rest.cluster AND total.start < rest.t1
                  AND (total."end" IS NULL OR total."end" > rest.t0){conditions}
            OFFSET 0
        ) AS total
        WHERE NOT EXISTS (SELECT FROM crowding WHERE crowding.key = total.key)
    )
    SELECT cut, total.gpu_share_denominator::text, NULL,
           trunc(sum(extract(epoch FROM {until} - {begin}) * total.count * total.gpu_share_numerator) * 1000000)::text,
           total.flavor, total.uncharged, total.offering, {share}{columns}
    FROM usage AS total {cut}
    GROUP BY cut, total.gpu_share_denominator, total.gpu_share_numerator, total.flavor, total.uncharged,
             total.offering{columns}
    UNION ALL
    SELECT 0, NULL, NULL, json_build_array((SELECT moments FROM cuts), {prices})::text, '', FALSE, '', ''{no_names}
"""
_CUT = {
    "cut": """
    CROSS JOIN LATERAL generate_series(
        width_bucket(total.t0, cuts), width_bucket(total.t1 - interval '1 microsecond', cuts)
    ) AS cut
    """,
    "begin": "greatest(total.t0, cuts[cut])",
    "until": "least(total.t1, cuts[cut + 1])",
    "share": "total.gpu_share_numerator || '/' || total.gpu_share_denominator",
}
_ROLLED_UP = """
    UNION ALL
    SELECT step, total.denominator::text, total.price::text, sum(total.amount)::text, NULL, NULL, NULL, NULL{columns}
    FROM {rows} WHERE total.category = 'held'{conditions}
    GROUP BY step, total.denominator, total.price{columns}
"""
KEYS = len(Row._fields) - 1
"""The keys follow so many columns."""


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

    def values(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the names by these keys, as the ledger has them: what is unknown is empty."""
        return {key: "" if name == UNALLOCATED else name for key, name in zip(keys, self.names, strict=True)}

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
    rows = rolled_up.TOTALS if with_days else [rolled_up.ACCOUNTS]
    query = _QUERY.format(
        pieces=rolled_up.PIECES,
        crowding=crowded_gpus.CROWDING,
        prices=reading.compiled(rates.statement()).sql,
        no_names=", NULL" * len(keys),
        **words,
        **_CUT,
    )
    query += crowded_gpus.SINGLE_USES.format(**words, **_CUT)
    query += "".join(_ROLLED_UP.format(rows=each, **words) for each in rows)
    bounds = rolled_up.bounds(edges, now, with_days=with_days)
    with connection.cursor() as cursor:
        cursor.execute(query, bounds | parameters)
        fetched = [Row._make([*row[:KEYS], row[KEYS:]]) for row in cursor.fetchall()]
    found = [row for row in fetched if row.flavor is None]
    found += _at_their_prices(edges, [row for row in fetched if row.flavor is not None])
    return _added_up(edges, found)


def total(found: Sequence[Sum], window: Window) -> Sum:
    """Return the sum of what `sums` has found."""
    used, unpriced = sum(one.used for one in found), sum(one.unpriced for one in found)
    return Sum(window, (), used, unpriced, sum(one.cost for one in found), found[0].per_gpu_hour if found else 1)


def regrouped(found: Sequence[Sum], of: Sequence[str], edges: Sequence[datetime], keys: Sequence[str]) -> list[Sum]:
    """Return what ``sums`` has found by the keys ``of``, by some of these ``keys``, and in longer windows or the same:
    those between ``edges``, which are bounds of windows of ``found``.
    """
    places, windows = [of.index(key) for key in keys], [Window(*bounds) for bounds in pairwise(edges)]
    groups: dict[tuple[Window, tuple[str, ...]], Sum] = {}
    for one in found:
        group = windows[bisect_right(edges, one.window.start) - 1], tuple(one.names[place] for place in places)
        before = groups.get(group, Sum(*group))
        added = (before.used + one.used, before.unpriced + one.unpriced, before.cost + one.cost)
        groups[group] = Sum(*group, *added, one.per_gpu_hour)
    return list(groups.values())


def _at_their_prices(edges: Sequence[datetime], of_ledger: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of the ledger like those of the roll-ups, each with the step that has its cut, and its price."""
    [moments, prices] = next(json.loads(row.amount) for row in of_ledger if not row.step)
    cuts, known = [datetime.fromisoformat(moment) for moment in moments], rates.price_list(prices)
    for row in crowded_gpus.charged([row for row in of_ledger if row.step]):
        since, until = cuts[row.step - 1 : row.step + 1]
        [(price, _, _)] = rating.by_price(
            known.rates.get(row.flavor, ()),
            since,
            until,
            listed=known.lists.get(row.offering, ()),
            slice_share=Fraction(row.share),
            is_charged=not row.uncharged,
        )
        yield row._replace(step=bisect_right(edges, since), price=price)


def _added_up(edges: Sequence[datetime], rows: Sequence[Row]) -> list[Sum]:
    """Return the rows by window and names.

    There are many rows, of few denominators and prices. So numbers come as text, and are multiplied up to the common
    denominator of all rows and added as integers.
    """
    base = lcm(*{int(row.denominator) for row in rows})
    units = {price: None if price is None else int(Fraction(price) * PRICE_UNITS) for price in {r.price for r in rows}}
    windows = [Window(*bounds) for bounds in pairwise(edges)]
    found: dict[tuple[Any, ...], Sum] = {}
    for row in rows:
        price, used = units[row.price], int(row.amount) * (base // int(row.denominator))
        unpriced, cost = (used, 0) if price is None else (0, used * price)
        key = row.step, row.names
        if known := found.get(key):
            used, unpriced, cost = used + known.used, unpriced + known.unpriced, cost + known.cost
        if used:
            names = row.names if all(row.names) else tuple(name or UNALLOCATED for name in row.names)
            found[key] = Sum(windows[row.step - 1], names, used, unpriced, cost, base * MICROSECONDS_PER_HOUR)
    return list(found.values())
