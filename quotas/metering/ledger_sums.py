"""Sums and overlaps of the ledger, computed by the database: what the accounts are compared with.

The database adds whole microseconds for each value of a unit; Fractions do the rest.
"""

from collections import defaultdict
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from portal.core.reading import read_rows
from quotas.metering.accounts import AccountKey
from quotas.metering.parts import MICROSECONDS_PER_HOUR

# Before the cluster's capacity was recorded there was as much as was held. What ended without a value is a GPU a unit.
# The resource of a use is that of its start: of the version before it, else of the first.
_CAPACITY = """
    WITH known AS (SELECT min(start) AS since FROM metering_capacityinterval WHERE cluster = %(cluster)s),
    spans AS (
        SELECT flavor, CASE kind WHEN 'gpu' THEN node ELSE '' END AS node, name,
               coalesce(gpus_numerator, 1) AS numerator, coalesce(gpus_denominator, 1) AS denominator, count,
               start AS t0, "end" AS t1
        FROM metering_capacityinterval
        WHERE cluster = %(cluster)s AND (offered IS NOT NULL OR "end" IS NOT NULL)
              AND start < %(last)s AND ("end" IS NULL OR "end" > %(first)s)
        UNION ALL
        SELECT usage.flavor, CASE WHEN usage.is_device THEN usage.node ELSE '' END,
               CASE WHEN usage.is_device THEN split_part(split_part(usage.slot, '/', 3), '-mig-', 1)
                    ELSE coalesce(CASE WHEN version.id IS NULL THEN offering.resource ELSE version.resource END, '')
               END,
               usage.gpu_share_numerator, usage.gpu_share_denominator, usage.count, usage.start,
               least(usage."end", known.since)
        FROM (SELECT *, node <> '' AND split_part(slot, '/', 2) = node AS is_device
              FROM metering_usageinterval) AS usage
        CROSS JOIN known
        LEFT JOIN catalog_offering AS offering ON offering.key = usage.offering
        LEFT JOIN LATERAL (
            SELECT one.id, one.document -> 'slices' -> split_part(usage.offering, '/', 2) ->> 'resource' AS resource
            FROM catalog_flavorversion AS one JOIN catalog_flavor AS flavor ON flavor.id = one.flavor_id
            WHERE flavor.name = usage.flavor
            ORDER BY one.since <= usage.start DESC, abs(extract(epoch FROM one.since - usage.start)),
                     CASE WHEN one.since <= usage.start THEN -one.id ELSE one.id END
            LIMIT 1
        ) AS version ON true
        WHERE usage.cluster = %(cluster)s AND (known.since IS NULL OR known.since > greatest(usage.start, %(first)s))
              AND usage.start < %(last)s AND (usage."end" IS NULL OR usage."end" > %(first)s)
    )
    SELECT flavor, node, name, numerator, denominator,
           sum(count * extract(epoch FROM least(t1, %(last)s) - greatest(t0, %(first)s)) * 1000000) AS microseconds
    FROM spans GROUP BY flavor, node, name, numerator, denominator
"""

_OVERLAPS = """
    WITH spans AS (
        SELECT 'usage' AS ledger, slot AS unit, key::text AS id, flavor, node, slot AS name, start, "end"
        FROM metering_usageinterval WHERE cluster = %(cluster)s
        UNION ALL
        SELECT 'capacity', concat_ws('/', node, kind, name), id::text, flavor, node, name, start, "end"
        FROM metering_capacityinterval WHERE cluster = %(cluster)s
    ),
    neighbours AS (
        SELECT *, max(coalesce("end", 'infinity')) OVER (
            PARTITION BY ledger, unit ORDER BY start, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before
        FROM spans
        WHERE start < %(last)s AND ("end" IS NULL OR ("end" > %(first)s AND "end" > start))
    )
    SELECT ledger, min(flavor) AS flavor, node, name, greatest(min(start), %(first)s) AS at, 1 + count(*) AS intervals
    FROM neighbours WHERE before > start GROUP BY ledger, node, name ORDER BY ledger, node, name
"""


class Overlap(NamedTuple):
    """Intervals of one slot or unit of which some overlap, first at ``at``; ``ledger`` is usage or capacity."""

    ledger: str
    flavor: str
    node: str
    name: str
    at: datetime
    intervals: int


def capacity(cluster: str, start: datetime, end: datetime) -> dict[AccountKey, Fraction]:
    """Return the GPU-hours that existed in ``[start, end)`` by account; one query."""
    found: dict[AccountKey, Fraction] = defaultdict(Fraction)
    for row in read_rows(_CAPACITY, {"cluster": cluster, "first": start, "last": end}):
        value = Fraction(row.numerator, row.denominator) * int(row.microseconds)
        found[AccountKey(cluster, row.flavor, row.node, row.name)] += value / MICROSECONDS_PER_HOUR
    return dict(found)


def overlaps(cluster: str, start: datetime, end: datetime) -> list[Overlap]:
    """Return the slots and units with intervals that overlap each other in ``[start, end)``; one query."""
    rows = read_rows(_OVERLAPS, {"cluster": cluster, "first": start, "last": end})
    return [Overlap(**row._asdict()) for row in rows]
