"""python -m bench --only rollups: sums over a year of usage against a query by hand on the roll-ups of days.

Rows of usage, and the roll-ups of all hours and days, are made by SQL on a database of its own.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from django.db import connection

from bench.catalogue import throw_away_database
from bench.statistics import compare
from quotas.costs import ledger
from quotas.metering.hours import DAY, midnights
from tests.support.fleet import fleet

ROWS = 1_000_000
START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
MONTHS = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 13)] + [END]
TABLES = ("usageinterval", "hourtotal", "daytotal", "accounthour")
ACCOUNT_DAYS = 2
"""Days of which hours of accounts are made, to measure their size: 1,000 GPUs, each held once and idle once an hour."""

# 200 projects of 40 teams, each with three offerings.
_USAGE = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, offering, flavor, kind, cluster, node, device_uuid, department, team, project, member, namespace,
        source_start, source_end, recorded_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'bench/' || n, begins, begins + (1 + n %% 37) * interval '7 minutes',
           false, false, 1, 1 + n %% 3, 1 + n %% 2, false, offering.key, offering.flavor, 'whole', 'local', '', '',
           'research', 'team-' || n %% 40, 'project-' || n %% 200, 'member-' || n %% 1000, 'project-' || n %% 200,
           '{}', '{}', begins
    FROM (SELECT n, %(start)s::timestamptz + n * ((%(end)s::timestamptz - %(start)s) / %(rows)s) AS begins
          FROM generate_series(0, %(rows)s - 100) AS n) AS made
    JOIN (SELECT offering.key, flavor.name AS flavor, row_number() OVER (ORDER BY offering.key) - 1 AS number,
                 count(*) OVER () AS total
          FROM catalog_offering AS offering JOIN catalog_flavor AS flavor ON flavor.id = offering.flavor_id) AS offering
        ON offering.number = (n %% 200 + n %% 3) %% offering.total
"""
_HOURS = """
    INSERT INTO metering_hourtotal
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, hour, usage.flavor, 'held', offering, department, team, project, price, gpu_share_denominator,
           sum(count * extract(epoch FROM least("end", hour + interval '1 hour') - greatest(start, hour)) * 1000000)
    FROM metering_usageinterval AS usage
    CROSS JOIN LATERAL generate_series(date_trunc('hour', start), "end" - interval '1 us', interval '1 hour') AS hour
    LEFT JOIN (SELECT flavor.name AS flavor, max(per_gpu_hour) AS price
               FROM costs_price JOIN catalog_flavor AS flavor ON flavor.id = flavor_id GROUP BY name) AS priced
        ON priced.flavor = usage.flavor
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 2
"""
_DAYS = """
    INSERT INTO metering_daytotal
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, date_trunc('day', start), flavor, category, offering, department, team, project, price, denominator,
           sum(amount)
    FROM metering_hourtotal GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 2
"""
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
BY_HAND = """
    SELECT {step}, {names}, denominator, price, sum(amount) FROM metering_daytotal
    WHERE start >= %(start)s AND start < %(end)s AND category = 'held' GROUP BY {step}, {names}, denominator, price
"""


def measure(rounds: int, rows: int = ROWS) -> dict[str, Any]:
    """Return the part ``rollups`` of ``bench.json``."""
    with throw_away_database():
        fleet()
        bounds = {"start": START, "end": END, "rows": rows, "until": START + ACCOUNT_DAYS * DAY}
        for statement in (_USAGE, _HOURS, _DAYS, _ROLLED_UP, _ACCOUNTS):
            _execute(statement, bounds)
        _execute("ANALYZE", {})
        days = midnights(END - 40 * DAY, END - 10 * DAY)
        return {
            "rows": rows,
            "tables": {name: _size(f"metering_{name}") for name in TABLES},
            "queries": {
                "team x offering x day, 30 days": _compare(days, ("team", "offering"), "start", rounds),
                "project x month, 12 months": _compare(MONTHS, ("project",), "date_trunc('month', start)", rounds),
            },
        }


def _compare(edges: list[datetime], keys: tuple[str, ...], step: str, rounds: int) -> dict[str, Any]:
    query = BY_HAND.format(step=step, names=", ".join(keys))
    values = {"start": edges[0], "end": edges[-1]}

    def ours() -> object:
        return ledger.sums(edges, keys, {}, END + timedelta(days=1))

    series = _series(ours, lambda: _execute(query, values), rounds)
    rolled_up = ours()
    with_marks = "INSERT INTO metering_dirtyhour (cluster, hour) SELECT cluster, hour FROM metering_rolleduphour"
    _execute(with_marks, {})
    start = perf_counter()
    if sorted(map(repr, ours())) != sorted(map(repr, rolled_up)):  # type: ignore[call-overload]
        raise RuntimeError("the ledger and its roll-ups have different sums")
    raw = perf_counter() - start
    _execute("DELETE FROM metering_dirtyhour", {})
    return {**compare(*series).document(), "ledger_s": round(raw, 3)}


def _series(ours: Callable[[], object], bare: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    series: tuple[list[float], list[float]] = ([], [])
    for n in range(rounds + 1):
        for side in (0, 1) if n % 2 else (1, 0):
            start = perf_counter()
            (ours, bare)[side]()
            if n:
                series[side].append(perf_counter() - start)
    return series


def _execute(statement: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def _size(table: str) -> dict[str, Any]:
    [(rows, total)] = _execute(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}", {})
    return {"rows": rows, "bytes": total, "bytes_per_row": round(total / max(1, rows))}
