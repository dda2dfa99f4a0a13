"""Watch epochs: only one watcher at a time writes the mirror of a cluster, the one that took the lock last.

The lock is a PostgreSQL advisory lock of a session, so a dead process releases it. A connection can also be lost
unnoticed. Therefore taking the lock starts a new epoch, and every write checks in its transaction that its epoch is
current.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from allocations.models import WatchEpoch
from portal.core.locks import take_session_lock
from portal.core.reading import NO_ROWS, Columns, Part


class EpochOver(Exception):
    """The epoch is over: another watcher writes the mirror now, or the database was restored from a backup."""


def begin(cluster: str) -> int | None:
    """Take the cluster's lock and begin an epoch; return its number, or None if another process has the lock.

    The lock is kept until the connection to the database is closed.
    """
    if not take_session_lock("watcher", cluster):
        return None
    with transaction.atomic():
        row, _ = WatchEpoch.objects.select_for_update().get_or_create(cluster_id=cluster)
        row.number += 1
        row.save()
    return row.number


@contextmanager
def writing(cluster: str, epoch: int) -> Iterator[None]:
    """Run the block in a transaction of this epoch. Raises EpochOver, with nothing written, if the epoch is over."""
    with transaction.atomic():
        rows, columns = _current(cluster)
        require(epoch, list(rows.values_list(*columns)))
        yield


def wait(cluster: str) -> None:
    """Wait until no watcher writes the mirror; none does until the transaction ends."""
    rows, columns = _current(cluster)
    list(rows.values_list(*columns))


def part(cluster: str, epoch: int | None) -> Part:
    """Return what to read for ``require`` (``portal.core.reading``). Until the transaction ends, no epoch begins."""
    return NO_ROWS if epoch is None else _current(cluster)


def _current(cluster: str) -> Columns:
    return Columns(WatchEpoch.objects.select_for_update().filter(cluster=cluster), ("number",))


def require(epoch: int | None, numbers: Sequence[Sequence[int]]) -> None:
    """Raise EpochOver if what was read of ``part`` is not this epoch; None requires nothing."""
    current = numbers[0][0] if numbers else None
    if current != epoch:
        raise EpochOver(f"epoch {epoch} is over: the current one is {current}")
