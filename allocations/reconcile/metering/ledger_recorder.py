"""Records the intervals of allocations whose holds a change shows to have begun or ended."""

from collections.abc import Collection
from uuid import UUID

import structlog

from allocations.domain.phases import Phase
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.metering import ledger
from allocations.reconcile.recorder import Recorder, Seen
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)


def _each(batch: BatchState, seen: Seen) -> Collection[Target]:
    """Update the ledger for the change; return the targets of the allocations that must be reconciled: those that it
    affects, and those whose intervals have changed. A reconcile that wrote the object itself knows of it, but not yet
    which holds it shows. The project's has recorded that what its guard admits is active.
    """
    change, rows = seen.change, seen.concerned
    admitted = {row.name for row in rows if row.phase == Phase.ACTIVE} & change.listed
    affected = change.changed_holds | (change.changed_listings - admitted)
    affected |= set() if seen.is_own_write else change.labelled_allocations
    changed = _sync(batch, seen)
    return {targets.allocation(batch.cluster, row.pk) for row in rows if row.pk in changed or row.name in affected}


def _sync(batch: BatchState, seen: Seen) -> set[UUID]:
    """Open and close intervals as the change shows; return the allocations of which it did."""
    if seen.snapshots is None:
        return set()
    (before, after), change, rows = seen.snapshots, seen.change, seen.concerned
    at, live = change.new.at, change.new.live
    if live and not change.is_relabelled:
        rows = [row for row in rows if not ledger.is_same_hold(row, before, after)]
    if not rows:
        return set()
    try:
        return ledger.sync(rows, after, before if live or not batch.is_first else None, at=at, live=live)
    except SlotHeld as error:
        log.warning("ledger.slot_held", error=str(error))
        return {row.pk for row in seen.concerned}


RECORDER = Recorder(each=_each)
