"""Marks the hours whose roll-up a change of the ledger makes wrong.

A mark is written in the transaction of the change. Most changes are of the present hour, which is not rolled up yet;
that follows from the time alone and takes no statement.
"""

from datetime import datetime, timedelta

from django.db import connection

from portal.core import clock
from quotas.metering.hours import HOUR, hour_of
from quotas.metering.ledger_starts import first_hours

DELAY = timedelta(minutes=5)
"""How long after its end an hour is rolled up at the earliest."""
LONGEST_TRANSACTION = timedelta(minutes=3)
"""The longest that a change may take until it is committed, clocks of two machines included: a change marks hours that
may be rolled up meanwhile.
"""


def settled_until(moment: datetime) -> datetime:
    """Return the end of the newest hour that may be rolled up at this moment."""
    return hour_of(moment - DELAY)


def mark(cluster: str, start: datetime, end: datetime | None = None) -> None:
    """Mark the hours of a cluster that ``[start, end)`` touches and that may be rolled up, up to now where ``end`` is
    None; one statement, none if there is no such hour.
    """
    first, until = hour_of(start), settled_until(clock.now() + LONGEST_TRANSACTION)
    if end is not None:
        until = min(until, hour_of(end - timedelta(microseconds=1)) + HOUR)
    if first >= until:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO metering_dirtyhour (cluster, hour)"
            " SELECT %s, generate_series(%s::timestamptz, %s::timestamptz, '1 hour')",
            [cluster, first, until - HOUR],
        )


def mark_all(start: datetime, end: datetime | None = None, *, cluster: str = "") -> None:
    """Mark the hours of all clusters, or one, that ``[start, end)`` touches, from the beginning of the ledger on."""
    if hour_of(start) < settled_until(clock.now() + LONGEST_TRANSACTION):
        for name, first in first_hours().items():
            if cluster in ("", name):
                mark(name, max(start, first), end)
