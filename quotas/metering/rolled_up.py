"""Which part of a window the roll-ups answer, and what they have of the fleet in it.

A query that begins with ``PIECES`` has the parameters of ``bounds``. Step n is the time from edge n to edge n + 1.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

from portal.core.reading import read_rows
from quotas.metering import ledger_starts
from quotas.metering.hours import DAY, day_of, month_of, next_month
from quotas.metering.idle_owners import PARTS
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category

MAX_REST = 7 * DAY
"""The most time of all clusters that is read from the ledger, which takes long."""

MIDNIGHT = "timestamptz '2000-01-01 00:00:00+00'"
"""A midnight in UTC: days are counted from it, since all of them have 24 hours."""

LEVELS = ("month", "day", "hour")
"""What is rolled up: whole months, days and hours, of UTC. Totals of each are in a table of its own."""

# A month, a day or an hour is taken only if it is within one step, a day only if its month is not taken, and an hour
# only if its day is not. The rest of each cluster is what lies between them, after the empty piece at the start.
# Marks come and go, so the planner often expects none: NOT IN reads them once, NOT EXISTS would once for each hour.
# Totals are joined by spans: what adjoins in a step and the same clusters have rolled up. A row is then compared with
# two bounds, and its step is not computed. What adjoins has the same end less the time of all up to it.
_SPAN = """
    {name}_span AS MATERIALIZED (
        SELECT step, t0, t1, array_agg(cluster) AS clusters
        FROM (
            SELECT step, cluster, min(t0) AS t0, max(t1) AS t1
            FROM (
                SELECT *, t1 - sum(t1 - t0) OVER (PARTITION BY cluster, step ORDER BY t0) AS adjoining
                FROM rolled_up_{name}
            ) AS summed
            GROUP BY step, cluster, adjoining
        ) AS span
        GROUP BY step, t0, t1
    )"""
_PIECE = "SELECT cluster, t0, t1 FROM rolled_up_{name} UNION ALL"
_PIECES = """
    WITH clean_hour AS MATERIALIZED (
        SELECT cluster, hour AS t0, date_bin(interval '24 hours', hour, {midnight}) AS day
        FROM metering_rolleduphour
        WHERE hour >= %(first)s AND hour <= %(last)s::timestamptz - interval '1 hour'
              AND (cluster, hour) NOT IN (SELECT DISTINCT cluster, hour FROM metering_dirtyhour WHERE hour >= %(first)s)
    ),
    clean_day AS MATERIALIZED (
        SELECT cluster, day AS t0, date_trunc('month', day, 'UTC') AS month FROM clean_hour
        WHERE day = ANY(%(days)s::timestamptz[]) GROUP BY cluster, day HAVING count(*) = 24
    ),
    rolled_up_month AS MATERIALIZED (
        SELECT cluster, whole.t0, whole.t1, width_bucket(whole.t0, %(edges)s::timestamptz[]) AS step
        FROM unnest(%(months)s::timestamptz[], %(month_ends)s::timestamptz[]) AS whole (t0, t1)
        JOIN clean_day ON clean_day.month = whole.t0
        GROUP BY cluster, whole.t0, whole.t1 HAVING count(*) * interval '24 hours' = whole.t1 - whole.t0
    ),
    rolled_up_day AS MATERIALIZED (
        SELECT cluster, t0, t0 + interval '24 hours' AS t1, width_bucket(t0, %(edges)s::timestamptz[]) AS step
        FROM clean_day WHERE (cluster, month) NOT IN (SELECT cluster, t0 FROM rolled_up_month)
    ),
    loose_hour AS MATERIALIZED (
        SELECT cluster, t0, t0 + interval '1 hour' AS t1, width_bucket(t0, %(edges)s::timestamptz[]) AS step
        FROM clean_hour WHERE (cluster, day) NOT IN (SELECT cluster, t0 FROM clean_day)
    ),
    rolled_up_hour AS MATERIALIZED (
        SELECT * FROM loose_hour
        WHERE width_bucket(t1 - interval '1 microsecond', %(edges)s::timestamptz[]) = step
    ),
    {spans},
    piece AS (
        {rolled_up}
        SELECT slug AS cluster, %(first)s::timestamptz AS t0, %(first)s::timestamptz AS t1 FROM clusters_cluster
    ),
    rest AS MATERIALIZED (
        SELECT * FROM (
            SELECT cluster, t1 AS t0,
                   lead(t0, 1, %(last)s::timestamptz) OVER (PARTITION BY cluster ORDER BY t0, t1) AS t1
            FROM piece
        ) AS gap WHERE t0 < t1
    )
"""
PIECES = _PIECES.format(
    midnight=MIDNIGHT,
    spans=",".join(_SPAN.format(name=name) for name in LEVELS),
    rolled_up=" ".join(_PIECE.format(name=name) for name in LEVELS),
)
# OFFSET 0 has each span look for its rows. Without it PostgreSQL may read all that a filter keeps, and then join them
# with no span at all.
_TOTALS_OF = """
    {name}_span CROSS JOIN LATERAL (
        SELECT * FROM {table} AS total
        WHERE total.start >= {name}_span.t0 AND total.start < {name}_span.t1
              AND total.cluster = ANY({name}_span.clusters)
        OFFSET 0
    ) AS total
"""


def totals(name: str, table: str) -> str:
    """Return the FROM of a query that begins with ``PIECES``: ``total``, the rows of a table of totals by "month",
    "day" or "hour" for what is read of this level, and ``step``.
    """
    return _TOTALS_OF.format(name=name, table=table)


TOTALS = [totals(name, f"metering_{name}total") for name in LEVELS]
ACCOUNTS = totals("hour", "metering_accounthour")

# What is owned is also taken off what has no owner, so that the idle of a flavor stays what it is.
_OWNED_OF = """
    (
        SELECT cluster, start, flavor, price, amount, department, team FROM metering_ownedidle{name}
        UNION ALL SELECT cluster, start, flavor, price, -amount, '', '' FROM metering_ownedidle{name}
    )
"""
_OWNED = """
    UNION ALL
    SELECT step, total.cluster, total.flavor, 'idle', total.price, {parts}, sum(total.amount), NULL, NULL, '',
           total.department, total.team
    FROM {rows}
    GROUP BY step, total.cluster, total.flavor, total.price, total.department, total.team
"""
_FLEET = """
    {pieces}
    SELECT 0 AS step, cluster, '' AS flavor, '' AS category, NULL::numeric AS price, NULL::numeric AS denominator,
           NULL::numeric AS amount, t0 AS gap_start, t1 AS gap_end, '' AS node, '' AS department, '' AS team
    FROM rest
    {totals}
"""
_TOTALS = """
    UNION ALL
    SELECT step, total.cluster, total.flavor, total.category, total.price, total.denominator, sum(total.amount),
           NULL, NULL, {node}, '', ''
    FROM {rows}
    GROUP BY step, total.cluster, total.flavor, total.category, total.price, total.denominator, {node}
"""


class Detail(Enum):
    """What else the GPU-hours of the fleet are told apart by."""

    NONE = "none"
    NODE = "node"
    OWNER = "owner"


class FleetPart(NamedTuple):
    """GPU-hours of a flavor in a step, at one price.

    With ``Detail.NODE`` of the GPUs of ``node``, empty where it is not known. With ``Detail.OWNER`` what is idle is
    told apart by whose unused quota it is, "" for the platform's; that part may come in pieces of which some are
    negative.
    """

    step: int
    cluster: str
    flavor: str
    category: Category
    price: Decimal | None
    gpu_hours: Fraction
    node: str = ""
    department: str = ""
    team: str = ""


class Rest(NamedTuple):
    """A part of a step of which the ledger of a cluster has to be read."""

    step: int
    cluster: str
    start: datetime
    end: datetime


def bounds(edges: Sequence[datetime], last: datetime, *, with_days: bool = True) -> dict[str, Any]:
    """Return the parameters of ``PIECES`` for the time between ``edges``, moments in order, and until ``last``.

    ``days`` are the UTC days within one step, of which the totals may be read, and ``months`` the UTC months.
    """
    first, last = edges[0], min(last, edges[-1])
    days, months = dict[datetime, datetime](), dict[datetime, datetime]()
    if with_days:
        days = dict(_within_one_step(edges, last, day_of(first), lambda day: day + DAY))
        months = dict(_within_one_step(edges, last, month_of(first), next_month))
    return {
        "edges": list(edges),
        "first": first,
        "last": last,
        "days": list(days),
        "months": list(months),
        "month_ends": list(months.values()),
    }


def _within_one_step(
    edges: Sequence[datetime], last: datetime, start: datetime, following: Callable[[datetime], datetime]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the periods from ``start`` on of which each ends where the ``following`` one begins, until ``last``."""
    while (end := following(start)) <= last:
        step = bisect_right(edges, start)
        if step and bisect_left(edges, end) == step:
            yield start, end
        start = end


def of_fleet(
    edges: Sequence[datetime], last: datetime, detail: Detail = Detail.NONE
) -> tuple[list[FleetPart], list[Rest]]:
    """Return what is rolled up of the fleet between ``edges`` and until ``last``, and what is not, of the time since
    each cluster's ledger began; one statement. By node the hours of accounts are read, as the totals have none.
    """
    by_node = detail == Detail.NODE
    node = "total.node" if by_node else "''::text"
    of_parts = [_TOTALS.format(rows=rows, node=node) for rows in ([ACCOUNTS] if by_node else TOTALS)]
    for name in LEVELS if detail == Detail.OWNER else ():
        of_parts.append(_OWNED.format(rows=totals(name, _OWNED_OF.format(name=name)), parts=PARTS))
    query = _FLEET.format(pieces=PIECES, totals="".join(of_parts))
    rows = read_rows(query, bounds(edges, last, with_days=not by_node))
    parts = [
        FleetPart(
            step=row.step,
            cluster=row.cluster,
            flavor=row.flavor,
            category=Category(row.category),
            price=row.price,
            gpu_hours=Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR,
            node=row.node,
            department=row.department,
            team=row.team,
        )
        for row in rows
        if row.gap_start is None
    ]
    return parts, unread(edges, rows)


def is_read(edges: Sequence[datetime], last: datetime) -> bool:
    """Return whether ``of_fleet`` leaves little enough for the ledger to be read; one statement."""
    return not is_too_long(unread(edges, read_rows(_FLEET.format(pieces=PIECES, totals=""), bounds(edges, last))))


def unread(edges: Sequence[datetime], rows: Iterable[Any]) -> list[Rest]:
    """Return by step what of the ledger has to be read: clusters and times that are in ``rest`` of ``PIECES``, since
    each cluster's ledger began. They are those of the rows that have a ``gap_start`` and ``gap_end``.
    """
    gaps = [(row.cluster, row.gap_start, row.gap_end) for row in rows if row.gap_start is not None]
    if sum((end - start for _, start, end in gaps), timedelta(0)) > MAX_REST:
        began = ledger_starts.first_hours()
        gaps = [(one, max(start, began[one]), end) for one, start, end in gaps if one in began]
    steps = [
        Rest(number, cluster, max(start, edges[number - 1]), min(end, edges[number]))
        for cluster, start, end in gaps
        for number in range(1, len(edges))
    ]
    return [one for one in steps if one.start < one.end]


def is_too_long(rest: Sequence[Rest]) -> bool:
    """Return whether too much of the ledger would have to be read."""
    return sum((one.end - one.start for one in rest), timedelta(0)) > MAX_REST
