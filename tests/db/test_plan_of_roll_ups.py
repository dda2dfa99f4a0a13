"""The plan of the query that reads what is rolled up, where the planner knows nothing of the table of marks."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from quotas.metering import rolled_up
from quotas.metering.models import DirtyHour, RolledUpHour
from tests.support.clusters import LOCAL
from tests.support.quotas import hour

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
