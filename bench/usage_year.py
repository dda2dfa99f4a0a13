"""Fills a database with a year of usage and its roll-ups by SQL: 40 teams, 200 projects, 12 offerings.

The statements are no part of the portal, so that a year takes minutes. Sums are compared with the ledger's own.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import connection

from quotas.metering.hours import DAY

START, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
"""A year that has passed, since no ledger has use in the future."""
MONTHS = [datetime(2025, month, 1, tzinfo=UTC) for month in range(1, 13)] + [END]
ACCOUNT_DAYS = 2
"""Days of which hours of accounts are made, to measure their size: 1,000 GPUs, each held once and idle once an hour."""

# Indexes are built after the rows, and no foreign key is checked: else this takes an hour.
_BARE = (
    "SET session_replication_role = replica",
    "SET work_mem = '256MB'",
    "SET maintenance_work_mem = '512MB'",
)
_INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'metering_usageinterval'"
_DONE = (
    "RESET session_replication_role",
    "RESET work_mem",
    "RESET maintenance_work_mem",
)

# Each project uses three offerings. An offering has one part of a GPU.
_USAGE = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, overtime, uncharged, offering, flavor, kind, cluster, node, device_uuid, department, team,
        project, member, namespace, source_start, source_end, recorded_at)
    SELECT lpad(to_hex(n), 32, '0')::uuid, gen_random_uuid(), 'bench/' || n, begins,
           begins + (1 + n %% 37) * interval '7 minutes', false, false, 1, 1 + offering %% 4, 1 + n %% 2, false, false,
           false, flavor || '/slice-' || offering, flavor, 'whole', 'local', '', '', 'research', 'team-' || n %% 40,
           'project-' || n %% 200, 'member-' || n %% 1000, 'project-' || n %% 200, '{}', '{}', begins
    FROM (SELECT n, (n %% 200 + n %% 3) %% 12 AS offering,
                 %(start)s::timestamptz + n * ((%(end)s::timestamptz - %(start)s) / %(rows)s) AS begins
          FROM generate_series(0, %(rows)s - %(rows)s / 1000) AS n) AS made
    CROSS JOIN LATERAL (SELECT CASE offering %% 2 WHEN 0 THEN 'h100' ELSE 'l40s' END AS flavor) AS of_offering
"""
_HOURS = """
    INSERT INTO metering_hourtotal
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, hour, usage.flavor, 'held', offering, department, team, project, price, gpu_share_denominator,
           sum(count * extract(epoch FROM least("end", hour + interval '1 hour') - greatest(start, hour)) * 1000000)
    FROM metering_usageinterval AS usage
    CROSS JOIN LATERAL generate_series(
        greatest(date_trunc('hour', start), %(first)s::timestamptz),
        least("end" - interval '1 us', %(last)s::timestamptz - interval '1 us'), interval '1 hour') AS hour
    LEFT JOIN (SELECT flavor.name AS flavor, max(per_gpu_hour) AS price
               FROM costs_price JOIN catalog_flavor AS flavor ON flavor.id = flavor_id GROUP BY name) AS priced
        ON priced.flavor = usage.flavor
    WHERE start < %(last)s AND "end" > %(first)s AND "end" < %(last)s::timestamptz + interval '1 day'
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 2
"""
_ADDED_UP = """
    INSERT INTO metering_{period}total
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, date_trunc('{period}', start), flavor, category, offering, department, team, project, price,
           denominator, sum(amount)
    FROM metering_{part}total GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 2
"""
_DAYS, _MONTHS = _ADDED_UP.format(period="day", part="hour"), _ADDED_UP.format(period="month", part="day")
_ROLLED_UP = """
    INSERT INTO metering_rolleduphour (cluster, hour, rolled_up_at)
    SELECT 'local', hour, hour
    FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '1 hour', interval '1 hour') AS hour
"""
_ACCOUNTS = """
    INSERT INTO metering_accounthour (
        cluster, start, flavor, category, offering, department, team, project, price, denominator, amount, is_gpu, node,
        name, holder_id, kind, member, namespace, owner_kind)
    SELECT 'local', hour, 'h100', category, 'h100/whole', 'research', 'team-' || gpu %% 40, 'project-' || gpu %% 200,
           2.5, 1, 1800000000, true, 'gpu-node-' || gpu / 8, 'gpu-' || gpu %% 8,
           CASE category WHEN 'held' THEN gen_random_uuid() END, 'whole', 'member-' || gpu, 'project-' || gpu %% 200, ''
    FROM generate_series(%(start)s::timestamptz, %(until)s::timestamptz - interval '1 hour', interval '1 hour') AS hour,
         generate_series(0, 999) AS gpu, unnest(ARRAY['held', 'idle']) AS category
"""


def fill(rows: int) -> None:
    """Make so many intervals of usage that begin in the year, evenly, and the roll-ups of all its hours, days and
    months.
    """
    indexes = [index for index in execute(_INDEXES) if not index[0].endswith("_pkey")]
    for statement in _BARE:
        execute(statement)
    for name, _ in indexes:
        execute(f"DROP INDEX {name}")
    bounds = {"start": START, "end": END, "rows": rows, "until": START + ACCOUNT_DAYS * DAY}
    execute(_USAGE, bounds)
    for _, definition in indexes:
        execute(definition)
    execute("ANALYZE metering_usageinterval")
    for first, last in pairwise(MONTHS):
        execute(_HOURS, {"first": first, "last": last})
    for statement in (_DAYS, _MONTHS, _ROLLED_UP, _ACCOUNTS):
        execute(statement, bounds)
    for statement in _DONE:
        execute(statement)
    execute("VACUUM ANALYZE")


def execute(statement: str, values: dict[str, Any] | None = None) -> list[Any]:
    """Return the rows of a statement, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def days(count: int) -> list[datetime]:
    """Return the bounds of so many days of the year's last quarter."""
    first = END - timedelta(days=count + 10)
    return [first + number * DAY for number in range(count + 1)]
