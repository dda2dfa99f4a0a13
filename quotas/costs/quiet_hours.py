"""Sums what was held at night and on weekends without any pod, in one statement."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

from portal.core.reading import read_rows
from quotas.costs import rating
from quotas.costs.rates import PriceList
from quotas.costs.rating import MICROSECONDS_PER_HOUR, RatedUsage, rated

# Each interval is cut at the quiet times, from when pods of its cluster's holds are recorded on. The times of pods of
# one hold do not overlap, so what they cover is a sum.
_QUERY = """
    WITH quiet_time AS (
        SELECT * FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS span (t0, t1, n)
    ),
    recorded AS (SELECT cluster, min(start) AS since FROM metering_holduse GROUP BY cluster),
    idle AS (SELECT * FROM unnest(%(holders)s::uuid[], %(since)s::timestamptz[]) AS hold (holder_id, since)),
    quiet AS (
        SELECT usage.holder_id, usage.cluster, usage.flavor, usage.offering, usage.team, usage.project,
               usage.member, usage.uncharged,
               usage.count, usage.gpu_share_numerator, usage.gpu_share_denominator, n,
               greatest(usage.start, quiet_time.t0, recorded.since) AS t0,
               least(usage."end", quiet_time.t1, idle.since) AS t1
        FROM metering_usageinterval AS usage
        JOIN recorded ON recorded.cluster = usage.cluster
        JOIN quiet_time ON usage.start < quiet_time.t1 AND (usage."end" IS NULL OR usage."end" > quiet_time.t0)
        LEFT JOIN idle ON idle.holder_id = usage.holder_id
        WHERE usage.start < %(last)s AND (usage."end" IS NULL OR usage."end" > %(first)s)
              AND (usage.member <> '' OR usage.unused) AND (%(teams)s::text[] IS NULL OR usage.team = ANY(%(teams)s))
    )
    SELECT cluster, flavor, offering, team, project, member, holder_id, uncharged,
           gpu_share_numerator AS numerator, gpu_share_denominator AS denominator, n,
           trunc(sum(extract(epoch FROM t1 - t0 - covered) * count) * 1000000)::text AS amount
    FROM quiet CROSS JOIN LATERAL (
        SELECT coalesce(sum(least(pods."end", quiet.t1) - greatest(pods.start, quiet.t0)), interval '0') AS covered
        FROM metering_holduse AS pods
        WHERE pods.holder_id = quiet.holder_id AND pods.start < quiet.t1
              AND (pods."end" IS NULL OR pods."end" > quiet.t0)
    ) AS with_pods
    WHERE t0 < t1
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
"""


class QuietKey(NamedTuple):
    cluster: str
    flavor: str
    offering: str
    team: str
    project: str
    member: str
    holder_id: UUID


def without_pods(
    spans: Sequence[tuple[datetime, datetime]],
    teams: Collection[str] | None,
    prices: PriceList,
    idle: Mapping[UUID, datetime],
) -> dict[QuietKey, RatedUsage]:
    """Return what was held without pods in these times, each of which is at one price; one query, none without a time.

    What the holds in ``idle`` hold from their time on is left out. A slice counts as its part of the GPU. ``teams`` are
    the slugs whose use may be seen, None for all.
    """
    found: dict[QuietKey, RatedUsage] = {}
    if not spans:
        return found
    values: dict[str, Any] = {
        "starts": [start for start, _ in spans],
        "ends": [end for _, end in spans],
        "first": spans[0][0],
        "last": spans[-1][1],
        "holders": list(idle),
        "since": list(idle.values()),
        "teams": None if teams is None else list(teams),
    }
    for row in read_rows(_QUERY, values):
        key = QuietKey(*(getattr(row, name) for name in QuietKey._fields))
        share, (start, end) = Fraction(row.numerator, row.denominator), spans[row.n - 1]
        [(price, _, _)] = rating.by_price(
            prices.rates.get(key.flavor, ()),
            start,
            end,
            listed=prices.lists.get(key.offering, ()),
            slice_share=share,
            is_charged=not row.uncharged,
        )
        usage = rated(share * Fraction(int(row.amount), MICROSECONDS_PER_HOUR), price)
        found[key] = found.get(key, RatedUsage()) + usage
    return found


def price_moments(prices: PriceList) -> set[datetime]:
    """Return when prices begin."""
    of_flavors = {row.valid_from for listed in prices.rates.values() for row in listed}
    return of_flavors | {row.valid_from for listed in prices.lists.values() for row in listed}
