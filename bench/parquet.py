"""The rows of the ledger and the roll-ups of days as Parquet, asked by DuckDB."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from django.db import connection

from quotas.metering.parts import MICROSECONDS_PER_HOUR

# Times without a zone, in UTC, so that DuckDB needs no extension. A sum of BIGINT is exact, one of HUGEINT is not.
_USAGE = """
    SELECT start AT TIME ZONE 'UTC', "end" AT TIME ZONE 'UTC', gpu_share_numerator, gpu_share_denominator, count,
           offering, team, project
    FROM metering_usageinterval
"""
_DAYS = """
    SELECT start AT TIME ZONE 'UTC', denominator, amount, price, offering, team, project
    FROM metering_daytotal WHERE category = 'held'
"""
_NAMES = dict.fromkeys(("offering", "team", "project"), "VARCHAR")
_SHARE = dict.fromkeys(("gpu_share_numerator", "gpu_share_denominator", "count"), "INT")
_COLUMNS = {
    "usage": (_USAGE, {"start": "TIMESTAMP", "end": "TIMESTAMP"} | _SHARE | _NAMES),
    "days": (
        _DAYS,
        {"start": "TIMESTAMP", "denominator": "BIGINT", "amount": "BIGINT", "price": "DECIMAL(20, 10)"} | _NAMES,
    ),
}
_ASK = {
    # An interval is cut at the bounds of the steps that it touches.
    "usage": """
        SELECT step, {names}, gpu_share_denominator,
               sum(gpu_share_numerator::BIGINT * count * (epoch_us(least("end", step + INTERVAL 1 {step}))
                                                           - epoch_us(greatest(start, step))))
        FROM (SELECT *, unnest(generate_series(date_trunc('{step}', greatest(start, $first)),
                                               least("end", $last) - INTERVAL 1 MICROSECOND,
                                               INTERVAL 1 {step})) AS step
              FROM read_parquet('{path}') WHERE start < $last AND "end" > $first)
        GROUP BY ALL
    """,
    "days": """
        SELECT date_trunc('{step}', start)::TIMESTAMP AS step, {names}, denominator, sum(amount)
        FROM read_parquet('{path}') WHERE start >= $first AND start < $last GROUP BY ALL
    """,
}


def write(folder: Path) -> dict[str, Path]:
    """Write both in ``folder``; return their paths by name."""
    return {name: _write(name, folder) for name in _COLUMNS}


def ask(path: Path, name: str, step: str, edges: Sequence[datetime], keys: Sequence[str]) -> dict[Any, Fraction]:
    """Return the GPU-hours by step and keys between the first and the last edge, which are bounds of steps."""
    query = _ASK[name].format(path=path, step=step, names=", ".join(keys))
    first, last = (edge.replace(tzinfo=None) for edge in (edges[0], edges[-1]))
    with duckdb.connect() as database:
        rows = database.execute(query, {"first": first, "last": last}).fetchall()
    found: dict[Any, Fraction] = defaultdict(Fraction)
    for start, *names, denominator, amount in rows:
        found[start.replace(tzinfo=UTC), *names] += Fraction(amount, denominator * MICROSECONDS_PER_HOUR)
    return found


def _write(name: str, folder: Path) -> Path:
    path, text = folder / f"{name}.parquet", folder / f"{name}.csv"
    select, columns = _COLUMNS[name]
    with connection.cursor() as cursor, text.open("wb") as file, cursor.copy(f"COPY ({select}) TO STDOUT CSV") as rows:
        for row in rows:
            file.write(row)
    with duckdb.connect() as database:
        database.execute(f"COPY (FROM read_csv('{text}', header = false, columns = {columns})) TO '{path}'")
    text.unlink()
    return path
