"""The UUID of a held device: as it is published now while it is held, since a claim holds a device by its name and a
reboot may number GPUs anew; afterwards as it was when the hold began, which the ledger keeps.
"""

from collections.abc import Iterable
from uuid import UUID

from portal.core.reading import read_rows
from quotas.metering.models import UsageInterval

JOIN = """
    LEFT JOIN metering_capacityinterval AS capacity
        ON usage."end" IS NULL AND capacity."end" IS NULL AND capacity.kind = 'gpu'
        AND (capacity.cluster, capacity.node) = (usage.cluster, usage.node)
        AND capacity.name = split_part(usage.slot, '/', 3)
"""
"""Of ``metering_usageinterval AS usage``: at most one row, since a unit has one open interval. The capacity ledger has
the UUIDs of whole GPUs.
"""
UUID_COLUMN = "COALESCE(NULLIF(capacity.uuid, ''), usage.device_uuid)"
_UUIDS = (
    f"SELECT usage.key, {UUID_COLUMN} AS uuid FROM metering_usageinterval AS usage {JOIN} WHERE usage.key = ANY(%s)"  # noqa: S608
)


def of_intervals(rows: Iterable[UsageInterval]) -> dict[UUID, str]:
    """Return the UUID of each interval's device by the interval's key; one query if any is open on a device."""
    rows = list(rows)
    found = {row.key: row.device_uuid for row in rows}
    held = [row.key for row in rows if row.end is None and row.node]
    if held:
        found |= {row.key: row.uuid for row in read_rows(_UUIDS, [held])}
    return found
