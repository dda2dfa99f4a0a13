"""python -m bench --only rollups: sums over a year of usage against a query by hand on the roll-ups of days.

Also what people ask of them over REST (``bench.cost_questions``), and how quickly intervals are recorded and rolled up
(``bench.recording``). All on a database of its own.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench import cost_questions, recording, usage_year
from bench.catalogue import throw_away_database
from bench.statistics import compare
from bench.usage_year import END, MONTHS, execute
from quotas.costs import ledger
from tests.support.fleet import fleet

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
    with throw_away_database():
        fleet()
        recorded = recording.measure()
        usage_year.fill(rows)
        return {
            "rows": rows,
            "queries": {name: _measure(step, edges, keys, rounds) for name, step, edges, keys in QUESTIONS},
            "rest": cost_questions.measure(rounds, _series),
            "recording": recorded,
        }


def _measure(step: str, edges: Sequence[datetime], keys: tuple[str, ...], rounds: int) -> dict[str, Any]:
    by_hand = BY_HAND.format(step="start" if step == "day" else f"date_trunc('{step}', start)", names=", ".join(keys))
    ours = partial(ledger.sums, edges, keys, {}, AFTER)
    with CaptureQueriesContext(connection) as caught:
        found = ours()
    bare = partial(execute, by_hand, {"start": edges[0], "end": edges[-1]})
    expected = {(one.window.start, *one.names): one.usage.gpu_hours for one in found}
    _check({row[:-2]: row[-2] for row in bare()}, expected)
    return {**compare(*_series(ours, bare, rounds)).document(), "queries": len(caught), "answer": len(found)}


def _check(by_hand: dict[Any, Any], expected: dict[Any, Fraction]) -> None:
    """Raise unless both have nearly the same GPU-hours: the query by hand divides Decimals."""
    same = by_hand.keys() == expected.keys()
    if not same or any(abs(Fraction(by_hand[key]) - amount) > Fraction(1, 10**9) for key, amount in expected.items()):
        raise RuntimeError("the query by hand has other sums than the portal")


def _series(ours: Callable[[], object], bare: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    series: tuple[list[float], list[float]] = ([], [])
    for n in range(rounds + 1):
        for side in (0, 1) if n % 2 else (1, 0):
            start = perf_counter()
            (ours, bare)[side]()
            if n:
                series[side].append(perf_counter() - start)
    return series
