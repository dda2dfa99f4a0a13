"""When the ledger of each cluster begins: looked up in an index, however many intervals there are."""

import pytest
from django.db import connection

from quotas.metering import ledger_starts
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.quotas import hour, used
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db
ROWS = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, overtime, uncharged, offering, flavor, kind, cluster, node, device_uuid, department, team,
        project, member, namespace, source_start, source_end, recorded_at
    )
    SELECT gen_random_uuid(), holder_id, slot, start + n * interval '1 minute', start + n * interval '1 minute', false,
           false, 1, 1, 1, false, false, false, offering, flavor, kind, cluster, node, device_uuid, department, team,
           project, member, namespace, source_start, source_start, recorded_at
    FROM metering_usageinterval CROSS JOIN generate_series(1, 5000) AS n
"""


def test_a_ledger_begins_with_its_first_interval_of_either_kind() -> None:
    fleet()
    other, empty = make_cluster("other").slug, make_cluster("empty").slug
    record(RESOURCES, 5.25)
    used(hour(3.5), None)
    used(hour(7.5), None, cluster=other)
    assert ledger_starts.first_hours() == {LOCAL: hour(3), other: hour(7)}
    assert ledger_starts.capacity_recorded_since() == {LOCAL: hour(5.25), other: None}
    assert empty not in ledger_starts.first_hours()


def test_the_first_interval_is_looked_up_in_an_index() -> None:
    fleet()
    used(hour(3.5), None)
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        cursor.execute("ANALYZE metering_usageinterval")
        with executed() as queries:
            ledger_starts.first_hours()
        [(query, values)] = queries
        cursor.execute(f"EXPLAIN {query}", values)
        lines = "\n".join(line for (line,) in cursor.fetchall())
    assert "using usage_cluster_start on metering_usageinterval" in lines
    assert "Seq Scan on metering_usageinterval" not in lines
