"""The recorders, in the order in which each change is given to them.

To add one, write a module with a ``Recorder`` and name it here. What is available of a node is recorded before what is
used of it, and with a list after that: a use may show that a unit was there before the list.
"""

from collections.abc import Sequence

from allocations.reconcile import change_targets
from allocations.reconcile.metering import capacity_ledger, foreign_use, hold_use, job_ledger, ledger_recorder, pod_ends
from allocations.reconcile.recorder import Recorder

RECORDERS: Sequence[Recorder] = (
    job_ledger.RECORDER,
    capacity_ledger.WATCHED,
    ledger_recorder.RECORDER,
    foreign_use.RECORDER,
    hold_use.RECORDER,
    pod_ends.RECORDER,
    capacity_ledger.LISTED,
    change_targets.RECORDER,
)
