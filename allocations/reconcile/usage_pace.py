"""Limits how often the use of GPUs and nodes by pods of others is counted again.

Anyone who may create pods can change it many times a second, and counting it reads the whole fleet.
"""

from time import monotonic

from portal.workqueue import queue as workqueue
from portal.workqueue import targets

EVERY_S = 2.0


class UsagePace:
    """Enqueues the inventory of a cluster at once after a change of use, and then at most every ``EVERY_S``.

    A change that waits is in memory only; a watcher that starts enqueues the inventory anyway.
    """

    def __init__(self, cluster: str) -> None:
        self._target = targets.inventory(cluster)
        self._is_changed = False
        self._next = 0.0

    def changed(self) -> None:
        """Remember that the use has changed."""
        self._is_changed = True

    def enqueue_due(self) -> None:
        """Enqueue the inventory if the use has changed and the last time is ``EVERY_S`` ago."""
        if self._is_changed and monotonic() >= self._next:
            workqueue.enqueue(self._target)
            self._is_changed, self._next = False, monotonic() + EVERY_S
