"""Reads all that the reconcile of one allocation depends on: its row, the mirror, what was applied, and the ledger."""

from typing import NamedTuple
from uuid import UUID

from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.lifecycle import held_intervals, spec_of_row, unpublished
from allocations.lifecycle.held_intervals import HeldIntervals
from allocations.models import Allocation
from allocations.reconcile import mirror
from allocations.reconcile.engine import applied
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Columns, Rows, read_tables
from portal.workqueue import targets
from portal.workqueue.targets import Target


class AllocationState(NamedTuple):
    """An allocation and what was recorded of it at one moment."""

    row: Allocation
    snapshot: Snapshot
    applied: dict[Ref, Applied]
    intervals: HeldIntervals
    unpublished: str


def _parts(cluster: str, id_: UUID, target: str) -> list[Columns | Rows]:
    return [
        Rows(spec_of_row.rows().filter(pk=id_, project__cluster=cluster).order_by()),
        *mirror.parts_of_allocation(cluster, id_),
        applied.part(Target(target)),
        *_held_parts(id_),
    ]


def _held_parts(id_: UUID) -> list[Columns | Rows]:
    return [*held_intervals.parts(id_), *unpublished.parts(id_)]


_STATE = QueryTemplate(_parts, cluster=str, id_=UUID, target=str)
_HELD = QueryTemplate(_held_parts, id_=UUID)


def read(cluster: str, id_: str) -> AllocationState | None:
    """Return the state of an allocation of the cluster, or None if there is none; one query.

    The mirror and the ledger change together, so what is held agrees with what is charged.
    """
    target = targets.allocation(cluster, id_)
    rows, objects, positions, records, latest, first, devices, resources = read_tables(
        *_STATE.of(cluster=cluster, id_=UUID(id_), target=target)
    )
    if not rows:
        return None
    intervals = held_intervals.of_parts(latest, first)
    snapshot, gone = mirror.of_parts(objects, positions), unpublished.words(devices, resources)
    return AllocationState(rows[0], snapshot, applied.of_rows(records), intervals, gone)


def read_held(id_: UUID) -> tuple[HeldIntervals, str]:
    """Return what the ledger has of an allocation, and what of it no node publishes any more; one query."""
    latest, first, devices, resources = read_tables(*_HELD.of(id_=id_))
    return held_intervals.of_parts(latest, first), unpublished.words(devices, resources)
