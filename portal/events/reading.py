"""Reads events in an order in which none is skipped, and deletes old ones.

A transaction that commits late may have written an event with a lower id than one that was read before. Events are
therefore read in the order of their transactions, and none of a transaction as long as an earlier one may still
commit: `pg_current_snapshot()` says up to which all have ended. So a transaction that writes for long holds up all
events after its first write, however old they are.
"""

from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import BigIntegerField, Func, Q, QuerySet

from portal.core import clock
from portal.events.models import Event

_XMIN = "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint)"
_XMAX = "(pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"


class Cursor(NamedTuple):
    """The place of an event in the order; that before all others is `START`."""

    transaction: int
    id: int


START = Cursor(0, 0)


def after(cursor: Cursor, rows: QuerySet[Event], limit: int) -> list[Event]:
    """Return the first of these events that come after the cursor, of transactions before which nothing can commit any
    more; in order, at most `limit`. One query.
    """
    settled = rows.filter(transaction__lt=Func(template=_XMIN, output_field=BigIntegerField()))
    later = Q(transaction=cursor.transaction, id__gt=cursor.id) | Q(transaction__gt=cursor.transaction)
    return list(settled.filter(later, transaction__gte=cursor.transaction).order_by("transaction", "id")[:limit])


def place(event: Event) -> Cursor:
    """Return the cursor after which the next event comes."""
    return Cursor(event.transaction, event.pk)


def purge() -> int:
    """Delete the events that are older than `EVENTS_KEPT_DAYS`, and return how many.

    Where a backup was restored into another PostgreSQL, the numbers of its transactions may be ahead of that one's:
    these events become the first in order.
    """
    Event.objects.filter(transaction__gte=Func(template=_XMAX, output_field=BigIntegerField())).update(transaction=0)
    return Event.objects.filter(at__lt=clock.now() - timedelta(days=settings.EVENTS_KEPT_DAYS)).delete()[0]
