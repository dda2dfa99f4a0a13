"""Reads all that the reconcile of one allocation depends on: its row, the mirror, what was applied, and the ledger."""

from typing import NamedTuple

from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.lifecycle import held_intervals, spec_of_row
from allocations.lifecycle.held_intervals import HeldIntervals
from allocations.models import Allocation
from allocations.reconcile import mirror
from allocations.reconcile.engine import applied
from portal.core.reading import Rows, read_tables
from portal.workqueue import targets


class AllocationState(NamedTuple):
    """An allocation and what was recorded of it at one moment."""

    row: Allocation
    snapshot: Snapshot
    applied: dict[Ref, Applied]
    intervals: HeldIntervals


def read(cluster: str, id_: str) -> AllocationState | None:
    """Return the state of an allocation of the cluster, or None if there is none; one query.

    The mirror and the ledger change together, so what is held agrees with what is charged.
    """
    rows, objects, positions, records, latest, first = read_tables(
        Rows(spec_of_row.rows().filter(pk=id_, project__cluster=cluster)),
        *mirror.parts_of_allocation(cluster, id_),
        applied.part(targets.allocation(cluster, id_)),
        *held_intervals.parts(id_),
    )
    if not rows:
        return None
    intervals = held_intervals.of_parts(latest, first)
    return AllocationState(rows[0], mirror.of_parts(objects, positions), applied.of_rows(records), intervals)
