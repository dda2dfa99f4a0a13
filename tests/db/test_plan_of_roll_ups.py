"""The plans of the queries that read what is rolled up, and the rest from the ledger."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from quotas.costs import ledger
from quotas.metering import rolled_up
from quotas.metering.hours import DAY
from quotas.metering.models import DirtyHour, RolledUpHour
from tests.support.clusters import LOCAL
from tests.support.quotas import T0, hour, used

pytestmark = pytest.mark.django_db
HOURS = 400


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


def test_marks_are_read_once_for_all_hours_though_none_are_expected() -> None:
    at = [hour(number) for number in range(HOURS)]
    RolledUpHour.objects.bulk_create(RolledUpHour(cluster_id=LOCAL, hour=one, rolled_up_at=one) for one in at)
    DirtyHour.objects.bulk_create(DirtyHour(cluster_id=LOCAL, hour=one) for one in at * 10)
    with connection.cursor() as cursor:
        # As after an automatic ANALYZE at a moment when both were empty.
        tables = ["metering_dirtyhour", "metering_rolleduphour"]
        cursor.execute("UPDATE pg_class SET reltuples = 0, relpages = 50 WHERE relname = ANY(%s)", [tables])
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {rolled_up.PIECES} SELECT * FROM rest"
        cursor.execute(query, rolled_up.bounds([hour(0), hour(HOURS)], hour(HOURS)))
        [[[explained]]] = cursor.fetchall()
    reads = [one for one in nodes(explained["Plan"]) if one.get("Relation Name") == "metering_dirtyhour"]
    assert [one["Actual Loops"] for one in reads] == [1]


def test_many_marks_are_not_compared_with_each_hour() -> None:
    """More marks than fit the memory of a hash table, as after an import."""
    at = [hour(number) for number in range(HOURS)]
    RolledUpHour.objects.bulk_create(RolledUpHour(cluster_id=LOCAL, hour=one, rolled_up_at=one) for one in at)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '512kB'")
        mark = "INSERT INTO metering_dirtyhour (cluster, hour) SELECT %s, %s FROM generate_series(1, 100000)"
        cursor.execute(mark, [LOCAL, hour(0)])
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {rolled_up.PIECES} SELECT * FROM rest"
        cursor.execute(query, rolled_up.bounds([hour(0), hour(HOURS)], hour(HOURS)))
        [[[explained]]] = cursor.fetchall()
    rows = (
        one["Actual Rows"] * one["Actual Loops"] for one in nodes(explained["Plan"]) if one.get("Parent Relationship")
    )
    assert max(rows) < 2 * 100_000


def test_a_window_before_the_first_use_reads_no_interval_of_the_ledger() -> None:
    for number in range(20):
        used(hour(number), hour(number + 1))
    assert _intervals_looked_for(T0 - 365 * DAY, T0) == 0
    assert _intervals_looked_for(T0 - 365 * DAY, hour(1)) > 0


def _intervals_looked_for(start: datetime, end: datetime) -> int:
    """Return how often the query of a sum reads intervals, but for the first one of a cluster."""
    explained = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
            explained.append(cursor.cursor.fetchone()[0][0]["Plan"])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        ledger.sums([start, end], ("team",), {}, end)
    reads = (one for plan in explained for one in nodes(plan) if one.get("Relation Name") == "metering_usageinterval")
    return sum(one["Actual Loops"] for one in reads if not one["Alias"].startswith("one"))
