"""python -m bench --only rollups: sums over a year of usage against a query by hand on the roll-ups of days.

Beside both the same rows as Parquet, asked by DuckDB (``bench.parquet``), and how quickly intervals are recorded and
rolled up (``bench.recording``). All on a database of its own.
"""

import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench import cost_pages, cost_questions, parquet, recording, usage_year
from bench.catalogue import throw_away_database
from bench.statistics import compare, percentile
from bench.usage_year import END, MONTHS, execute
from quotas.costs import ledger
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from tests.support import cost_answers
from tests.support.fleet import fleet

TABLES = ("usageinterval", "hourtotal", "daytotal", "monthtotal", "accounthour")
LEDGER_ROWS = 1_000_000
"""The most rows of usage of which the sums are also read from the ledger alone."""
AFTER = END + timedelta(days=1)
BY_HAND = """
    SELECT {step}, {names}, sum(amount / denominator) / 3600000000 AS gpu_hours,
           sum(amount * price / denominator) / 3600000000 AS cost
    FROM metering_daytotal
    WHERE start >= %(start)s AND start < %(end)s AND category = 'held' GROUP BY {step}, {names}
"""
QUESTIONS: Sequence[tuple[str, str, Sequence[datetime], tuple[str, ...]]] = (
    ("team x offering x day, 30 days", "day", usage_year.days(30), ("team", "offering")),
    ("project x month, 12 months", "month", MONTHS, ("project",)),
)


def measure(rounds: int, rows: int) -> dict[str, Any]:
    """Return the part ``rollups`` of ``bench.json``."""
    with throw_away_database(), tempfile.TemporaryDirectory(prefix="gpu-portal-bench-") as folder:
        fleet()
        recorded = recording.measure()
        execute("VACUUM FULL")  # else what was taken back counts as a part of the size of each row
        start = perf_counter()
        usage_year.fill(rows)
        filled = perf_counter() - start
        files = parquet.write(Path(folder))
        return {
            "rows": rows,
            "fill_s": round(filled, 1),
            "tables": {name: usage_year.size(f"metering_{name}") for name in TABLES},
            "parquet": {name: path.stat().st_size for name, path in files.items()},
            "queries": {
                name: _measure(step, edges, keys, files, rounds, rows) for name, step, edges, keys in QUESTIONS
            },
            "rest": cost_questions.measure(rounds, _series),
            "pages": cost_pages.measure(),
            "recording": recorded,
        }


def _measure(
    step: str,
    edges: Sequence[datetime],
    keys: tuple[str, ...],
    files: dict[str, Path],
    rounds: int,
    rows: int,
) -> dict[str, Any]:
    by_hand = BY_HAND.format(step="start" if step == "day" else f"date_trunc('{step}', start)", names=", ".join(keys))
    ours = partial(ledger.sums, edges, keys, {}, AFTER)
    with CaptureQueriesContext(connection) as caught:
        found = ours()
    expected = {(one.window.start, *one.names): one.usage.gpu_hours for one in found}
    bare = partial(execute, by_hand, {"start": edges[0], "end": edges[-1]})
    _check("the query by hand", {row[:-2]: row[-2] for row in bare()}, expected)
    document: dict[str, Any] = {
        **compare(*_series(ours, bare, rounds)).document(),
        "queries": len(caught),
        "answer": len(found),
    }
    for name, path in files.items():
        ask = partial(parquet.ask, path, name, step, edges, keys)
        _check(f"DuckDB with {name}", ask(), expected, exact=True)
        document[f"duckdb_{name}"] = _times(ask, rounds)
    if step == "day":
        window = Window(edges[0], edges[-1])
        document["costs"] = _times(partial(cost_answers.costs, window, keys, step=Step.DAY, now=AFTER), rounds)
    if rows <= LEDGER_ROWS:
        document["ledger_s"] = _from_ledger_alone(ours, expected)
    return document


def _from_ledger_alone(ours: Callable[[], list[ledger.Sum]], expected: dict[Any, Fraction]) -> float:
    """Return how long the same takes if every hour has changed since it was rolled up."""
    execute("INSERT INTO metering_dirtyhour (cluster, hour) SELECT cluster, hour FROM metering_rolleduphour")
    start = perf_counter()
    found = ours()
    seconds = perf_counter() - start
    execute("DELETE FROM metering_dirtyhour")
    _check("the ledger alone", {(one.window.start, *one.names): one.usage.gpu_hours for one in found}, expected, True)
    return round(seconds, 3)


def _check(what: str, found: dict[Any, Any], expected: dict[Any, Fraction], exact: bool = False) -> None:
    """Raise unless both have the same GPU-hours, or nearly so where Decimals were divided."""
    bound = 0 if exact else Fraction(1, 10**9)
    same = found.keys() == expected.keys()
    if not same or any(abs(Fraction(found[key]) - amount) > bound for key, amount in expected.items()):
        raise RuntimeError(f"{what} has other sums than the portal")


def _series(ours: Callable[[], object], bare: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    series: tuple[list[float], list[float]] = ([], [])
    for n in range(rounds + 1):
        for side in (0, 1) if n % 2 else (1, 0):
            start = perf_counter()
            (ours, bare)[side]()
            if n:
                series[side].append(perf_counter() - start)
    return series


def _times(ask: Callable[[], object], rounds: int) -> dict[str, float]:
    times, _ = _series(ask, lambda: None, rounds)
    return {"p50_s": round(percentile(times, 0.5), 4), "p95_s": round(percentile(times, 0.95), 4)}
