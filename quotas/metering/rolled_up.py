"""Which part of a window the roll-ups answer, and what they have of the fleet in it.

A query that begins with ``PIECES`` has the parameters ``edges`` (moments in order), ``first`` (the first of them) and
``last`` (up to which is asked). Step n is the time from edge n to edge n + 1.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from django.db import connection

from quotas.metering import proofs
from quotas.metering.hours import DAY
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category

MAX_REST = 7 * DAY
"""The most time of all clusters that is read from the ledger, which takes long."""

# An hour, or a day, is taken only if it is within one step; an hour of such a day is not taken once more. The rest of
# each cluster is what lies between them, after the empty piece at the start.
PIECES = """
    WITH rolled_up_hour AS MATERIALIZED (
        SELECT cluster, hour, width_bucket(hour, %(edges)s::timestamptz[]) AS step
        FROM metering_rolleduphour AS rolled_up
        WHERE hour >= %(first)s AND hour <= %(last)s::timestamptz - interval '1 hour'
              AND width_bucket(hour, %(edges)s::timestamptz[])
                  = width_bucket(hour + interval '1 hour' - interval '1 microsecond', %(edges)s::timestamptz[])
              AND NOT EXISTS (
                  SELECT FROM metering_dirtyhour AS dirty
                  WHERE dirty.hour = rolled_up.hour AND dirty.cluster = rolled_up.cluster
              )
    ),
    rolled_up_day AS MATERIALIZED (
        SELECT cluster, date_trunc('day', hour, 'UTC') AS day, min(step) AS step
        FROM rolled_up_hour GROUP BY cluster, day HAVING count(*) = 24 AND min(step) = max(step)
    ),
    single_hour AS MATERIALIZED (
        SELECT * FROM rolled_up_hour AS one WHERE NOT EXISTS (
            SELECT FROM rolled_up_day AS whole
            WHERE whole.cluster = one.cluster AND whole.day = date_trunc('day', one.hour, 'UTC')
        )
    ),
    piece AS (
        SELECT cluster, day AS t0, day + interval '1 day' AS t1 FROM rolled_up_day
        UNION ALL SELECT cluster, hour, hour + interval '1 hour' FROM single_hour
        UNION ALL SELECT slug, %(first)s::timestamptz, %(first)s::timestamptz FROM clusters_cluster
    ),
    rest AS MATERIALIZED (
        SELECT * FROM (
            SELECT cluster, t1 AS t0,
                   lead(t0, 1, %(last)s::timestamptz) OVER (PARTITION BY cluster ORDER BY t0, t1) AS t1
            FROM piece
        ) AS gap WHERE t0 < t1
    )
"""

DAYS = """
    rolled_up_day JOIN metering_daytotal AS total
        ON total.cluster = rolled_up_day.cluster AND total.start = rolled_up_day.day
        AND total.start >= %(first)s AND total.start < %(last)s
"""
HOURS = """
    single_hour JOIN metering_hourtotal AS total
        ON total.cluster = single_hour.cluster AND total.start = single_hour.hour
        AND total.start >= %(first)s AND total.start < %(last)s
"""
ACCOUNTS = """
    rolled_up_hour JOIN metering_accounthour AS total
        ON total.cluster = rolled_up_hour.cluster AND total.start = rolled_up_hour.hour
        AND total.start >= %(first)s AND total.start < %(last)s
"""

_FLEET = """
    {pieces}
    {totals}
    SELECT 0, cluster, '', '', NULL, NULL, NULL, t0, t1 FROM rest
"""
_TOTALS = """
    SELECT step, total.cluster, total.flavor, total.category, total.price, total.denominator, sum(total.amount),
           NULL::timestamptz, NULL::timestamptz
    FROM {rows}
    GROUP BY step, total.cluster, total.flavor, total.category, total.price, total.denominator
    UNION ALL
"""


class FleetPart(NamedTuple):
    """GPU-hours of a flavor in a step, at one price."""

    step: int
    cluster: str
    flavor: str
    category: Category
    price: Decimal | None
    gpu_hours: Fraction


class Rest(NamedTuple):
    """A part of a step of which the ledger of a cluster has to be read."""

    step: int
    cluster: str
    start: datetime
    end: datetime


def of_fleet(edges: Sequence[datetime], last: datetime) -> tuple[list[FleetPart], list[Rest]]:
    """Return what is rolled up of the fleet between ``edges`` and until ``last``, and what is not, of the time since
    each cluster's ledger began.
    """
    totals = "".join(_TOTALS.format(rows=rows) for rows in (DAYS, HOURS))
    query = _FLEET.format(pieces=PIECES, totals=totals)
    with connection.cursor() as cursor:
        cursor.execute(query, {"edges": list(edges), "first": edges[0], "last": min(last, edges[-1])})
        fetched = cursor.fetchall()
    parts, gaps = [], []
    for step, cluster, flavor, category, price, denominator, amount, start, end in fetched:
        if start is None:
            gpu_hours = Fraction(amount) / Fraction(denominator) / MICROSECONDS_PER_HOUR
            parts.append(FleetPart(step, cluster, flavor, Category(category), price, gpu_hours))
        else:
            gaps.append((cluster, start, end))
    if sum((end - start for _, start, end in gaps), timedelta(0)) > MAX_REST:
        began = proofs.first_hours()
        gaps = [(one, max(start, began[one]), end) for one, start, end in gaps if one in began]
    steps = [
        Rest(number, cluster, max(start, edges[number - 1]), min(end, edges[number]))
        for cluster, start, end in gaps
        for number in range(1, len(edges))
    ]
    return parts, [one for one in steps if one.start < one.end]


def is_too_long(rest: Sequence[Rest]) -> bool:
    """Return whether too much of the ledger would have to be read."""
    return sum((one.end - one.start for one in rest), timedelta(0)) > MAX_REST
