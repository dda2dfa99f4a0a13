"""Reads what was used in the last weeks, by day of a calendar, and what is rated of a period so far."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from portal.core.reading import read_rows
from quotas.costs import columns, ledger
from quotas.costs.calendar import ONE_DAY
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.forecast import MAX_DAYS, DayPart, GpuHours, Key, PastDay
from quotas.costs.questions import Question
from quotas.costs.rating import MICROSECONDS_PER_HOUR, RatedUsage
from quotas.metering.hours import hour_of

KEYS = ("flavor", "offering")
"""The keys of the ledger on which a price depends."""

_FIRST_USE = """
    SELECT min(first) AS first FROM (
        SELECT (
            SELECT total.start FROM metering_usageinterval AS total
            WHERE total.cluster = cluster.slug AND total.start < %(now)s AND {condition}
            ORDER BY total.start LIMIT 1
        ) AS first FROM clusters_cluster AS cluster
    ) AS of_cluster
"""
# A use is looked for at the last midnight at which it ran, by its end: the index on (end, start) has both, so that only
# what ran at some midnight is read of the table. OFFSET 0 has each midnight look for its own.
# `asof` is the first midnight at which a use ran; what it used before it is left out.
_CARRIED = """
    WITH midnight AS (
        SELECT moment, lead(moment, 1, 'infinity') OVER (ORDER BY moment) AS next
        FROM unnest(%(edges)s::timestamptz[]) AS moment WHERE moment < %(until)s
    ),
    ran AS (
        SELECT total.* FROM midnight CROSS JOIN LATERAL (
            SELECT * FROM metering_usageinterval AS total
            WHERE total."end" > moment AND total."end" <= next AND total.start <= moment AND {condition}
            OFFSET 0
        ) AS total
        UNION ALL
        SELECT * FROM metering_usageinterval AS total
        WHERE total."end" IS NULL AND total.start <= %(last)s AND {condition}
    ),
    carried AS (
        SELECT ran.*, width_bucket(ran.start - interval '1 microsecond', %(edges)s::timestamptz[]) AS asof FROM ran
    ),
    span AS (
        SELECT carried.*, (%(edges)s::timestamptz[])[asof + 1] AS t0, least("end", %(until)s) AS t1 FROM carried
    )
    SELECT asof, day, flavor, offering, gpu_share_denominator::text AS denominator,
           trunc(sum(
               extract(epoch FROM least(t1, (%(edges)s::timestamptz[])[day + 1])
                                  - greatest(t0, (%(edges)s::timestamptz[])[day]))
               * count * gpu_share_numerator
           ) * 1000000)::text AS amount
    FROM span CROSS JOIN LATERAL generate_series(
        width_bucket(t0, %(edges)s::timestamptz[]),
        width_bucket(t1 - interval '1 microsecond', %(edges)s::timestamptz[])
    ) AS day
    GROUP BY asof, day, flavor, offering, gpu_share_denominator
"""


@dataclass(frozen=True)
class CostHistory:
    """What is ``rated`` from the start of a period until now, and the ``days`` before today, oldest first, from that
    of the first use on: at most those that a forecast counts.
    """

    rated: RatedUsage
    days: Sequence[PastDay]


def read(question: Question) -> CostHistory:
    """Return what was used in the days before that of the question's ``now``, and from the start of its window until
    ``now``; three queries.

    The sums are those of the roll-ups, and of the ledger where there are none. Days begin with a whole hour in UTC,
    less than an hour early in a zone with half hours, so that no roll-up is cut: the ledger takes long for so many.
    GPU-hours that an operator does not charge are among those of the days.
    """
    start, where, calendar, now = question.window.start, question.scope, question.calendar, question.now
    first, today = _first_use(where, now), calendar.day_of(now)
    begin = max(calendar.day_of(first), today - MAX_DAYS * ONE_DAY) if first else today
    dates = [begin + number * ONE_DAY for number in range((today - begin).days + 1)]
    starts = [hour_of(calendar.start_of(day)) for day in dates]
    days = [DayPart(day, *bounds) for day, bounds in zip(dates[:-1], pairwise(starts), strict=True)]
    edges = sorted({start, now, *starts})
    rated, used = RatedUsage(), defaultdict[int, dict[Key, Fraction]](dict)
    for one in ledger.sums(edges, KEYS, where, now) if edges[0] < now else ():
        if one.window.start >= start:
            rated += one.usage
        of_day, (flavor, offering) = used[bisect_right(starts, one.window.start) - 1], one.names
        of_day[flavor, offering] = of_day.get((flavor, offering), Fraction(0)) + one.usage.gpu_hours
    return CostHistory(rated, _with_carried(days, used, where) if days else [])


def _first_use(where: Filter, now: datetime) -> datetime | None:
    """Return when something was used for the first time, None if never."""
    condition, parameters = columns.condition(where)
    [row] = read_rows(_FIRST_USE.format(condition=condition), parameters | {"now": now})
    first: datetime | None = row.first
    return first


def _with_carried(days: Sequence[DayPart], used: Mapping[int, GpuHours], where: Filter) -> list[PastDay]:
    """Return the days with what they used, and what of it had begun before.

    What is charged of a GPU whose slices take more than it is less than their weights: carried is at most used.
    """
    hours = _carried_hours(days, where)
    found = []
    for place, day in enumerate(days):
        of_day = used.get(place, {})
        sums = accumulate((hours.get((asof, place), {}) for asof in range(place + 1)), _added)
        carried = [{key: min(amount, of_day.get(key, Fraction(0))) for key, amount in one.items()} for one in sums]
        found.append(PastDay(day, of_day, carried[::-1]))
    return found


def _carried_hours(days: Sequence[DayPart], where: Filter) -> dict[tuple[int, int], dict[Key, Fraction]]:
    """Return GPU-hours by two days, counted from the first: at whose start their use ran first, and in which they are.
    What ran before the first day ran at its start too.
    """
    edges = [days[0].start, *(day.end for day in days)]
    condition, parameters = columns.condition(where)
    bounds: dict[str, Any] = {"edges": edges, "last": edges[-2], "until": edges[-1]}
    found = defaultdict[tuple[int, int], dict[Key, Fraction]](dict)
    for row in read_rows(_CARRIED.format(condition=condition), bounds | parameters):
        hours = Fraction(int(row.amount), int(row.denominator) * MICROSECONDS_PER_HOUR)
        key = (row.flavor, row.offering or UNALLOCATED)
        found[row.asof, row.day - 1] = _added(found[row.asof, row.day - 1], {key: hours})
    return found


def _added(one: GpuHours, other: GpuHours) -> dict[Key, Fraction]:
    return {key: one.get(key, Fraction(0)) + other.get(key, Fraction(0)) for key in {*one, *other}}
