"""What a recorder is: it writes down what the watcher's changes show, in the transaction that writes the mirror."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from allocations.domain.objects import Snapshot
from allocations.models import Allocation
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.mirror_change import Change
from portal.workqueue.targets import Target


class Snapshots(NamedTuple):
    """The objects of some allocations of a namespace before and after a change."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True)
class Seen:
    """A change of fields that the portal reads, and the allocations that it ``concerned``.

    ``snapshots`` are of these allocations; None if the change cannot show what is held. ``is_own_write`` says that a
    reconcile wrote the object itself and knows of it.
    """

    change: Change
    concerned: Sequence[Allocation]
    snapshots: Snapshots | None
    is_own_write: bool


def _nothing(*_: object) -> None: ...


@dataclass(frozen=True)
class Recorder:
    """The functions of a recorder; the first two may return targets to reconcile.

    ``each`` is called with each change, in order; the mirror's rows of the batch are written once ``BatchState.write``
    is called. ``batch`` is called once with all changes, after ``each`` of all recorders. ``listed`` is called with
    cluster, kind and time after the changes that a full list showed: it records what no change has told.
    """

    each: Callable[[BatchState, Seen], Collection[Target] | None] = _nothing
    batch: Callable[[BatchState, Sequence[Seen]], Collection[Target] | None] = _nothing
    listed: Callable[[str, str, datetime], None] = _nothing
