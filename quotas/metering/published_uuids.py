"""The UUID of a held device: as it is published now while it is held, since a claim holds a device by its name and a
reboot may number GPUs anew; afterwards as it was when the hold began, which the ledger keeps.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from quotas.metering.models import UsageInterval

EXPRESSION = """
    CASE WHEN usage."end" IS NULL AND usage.node <> '' THEN COALESCE(NULLIF((
        SELECT uuid FROM metering_capacityinterval AS capacity
        WHERE capacity.cluster = usage.cluster AND capacity.node = usage.node AND capacity.kind = 'gpu'
              AND capacity.name = split_part(usage.slot, '/', 3) AND capacity."end" IS NULL
        ORDER BY capacity.start DESC LIMIT 1
    ), ''), usage.device_uuid) ELSE usage.device_uuid END
"""
"""Of a row of ``metering_usageinterval AS usage``; the capacity ledger has the UUIDs of whole GPUs."""


def of_intervals(rows: Iterable[UsageInterval]) -> dict[UUID, str]:
    """Return the UUID of each interval's device by the interval's key; one query if any is open on a device."""
    rows = list(rows)
    found = {row.key: row.device_uuid for row in rows}
    held = [row.key for row in rows if row.end is None and row.node]
    if held:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT key, {EXPRESSION} FROM metering_usageinterval AS usage WHERE key = ANY(%s)", [held])  # noqa: S608 (built from a constant)
            found |= dict(cursor.fetchall())
    return found
