"""Opens intervals that the watcher could not open, since another holder had the slot when it saw the hold."""

from uuid import UUID

from django.db import transaction

from allocations.domain.objects import Snapshot
from allocations.lifecycle.held_intervals import HeldIntervals
from allocations.models import Allocation
from allocations.reconcile import allocation_state, watch_epoch
from allocations.reconcile.metering import ledger
from portal.core import clock
from quotas.metering.services import SlotHeld


def open_missing(row: Allocation, snapshot: Snapshot, intervals: HeldIntervals) -> bool:
    """Open the intervals that an allocation's held slices lack; return whether any were opened. No query if by
    ``snapshot`` and ``intervals`` none is missing.

    They were read before, and a hold may have ended since. The watcher closes an interval only when it records an end,
    so one that was opened after that would stay open. What is held is therefore read again while no batch is recorded.

    Raises SlotHeld if another holder's interval on a slot is open, still; those before it are opened.
    """
    if not ledger.slices_outside(row, snapshot, intervals.by_open_slot):
        return False
    blocked: SlotHeld | None = None
    opened: set[UUID] = set()
    with transaction.atomic():
        watch_epoch.wait(row.project.cluster_id)
        now = allocation_state.read(row.project.cluster_id, str(row.pk))
        if now is None:
            return False
        known = {row.pk: dict(now.intervals.by_open_slot)}
        try:
            opened = ledger.open_held([now.row], now.snapshot, at=clock.now(), intervals=known)
        except SlotHeld as error:
            blocked = error
    if blocked is not None:
        raise blocked
    return bool(opened)
