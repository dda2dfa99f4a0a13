"""Limits how often the use of nodes by pods and claims of others is counted again.

Anyone who may create pods can change it many times a second.
"""

from collections.abc import Iterable
from time import monotonic

from django.db import transaction

from allocations.reconcile import usage_changes
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

EVERY_S = 2.0


class UsagePace:
    """Has the nodes of a cluster counted at once after a change of their use, and then at most every ``EVERY_S``.

    A change that waits is in memory only; a watcher that starts enqueues the inventory, which counts all nodes.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._nodes: set[str] = set()
        self._next = 0.0

    def changed(self, nodes: Iterable[str]) -> None:
        """Remember that the use of these nodes has changed."""
        self._nodes.update(nodes)

    def enqueue_due(self) -> None:
        """Have the nodes counted whose use has changed, if the last time is ``EVERY_S`` ago."""
        if self._nodes and monotonic() >= self._next:
            with transaction.atomic(savepoint=False):
                usage_changes.add(self._cluster, self._nodes)
                workqueue.enqueue(targets.usage(self._cluster))
            self._nodes, self._next = set(), monotonic() + EVERY_S
