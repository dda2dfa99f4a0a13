"""Kueue's arithmetic of what a queue can have in a tree of cohorts that lend to each other, for one resource. Pure.

Source: Kueue v0.19, pkg/cache/scheduler/resource_node.go.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Quota:
    """``nominal`` is guaranteed; ``borrowing`` the most taken of others beside it, ``lending`` the most of it given to
    others; None: unlimited.
    """

    nominal: int = 0
    borrowing: int | None = 0
    lending: int | None = None

    def times(self, amount: int) -> "Quota":
        return Quota(
            self.nominal * amount,
            None if self.borrowing is None else self.borrowing * amount,
            None if self.lending is None else self.lending * amount,
        )


ZERO_QUOTA = Quota()


class Tree:
    """Queues and cohorts by name: the parent of each (None: a root), their quotas, and the usage of each queue."""

    def __init__(
        self, parents: Mapping[str, str | None], quotas: Mapping[str, Quota], usage: Mapping[str, int] | None = None
    ) -> None:
        self._parents = parents
        self._quotas = quotas
        self._own_usage = usage or {}
        self._children: dict[str, list[str]] = defaultdict(list)
        for name, parent in parents.items():
            if parent is not None:
                self._children[parent].append(name)
        self.subtree = cache(self._subtree)
        self.usage = cache(self._usage)

    def quota(self, name: str) -> Quota:
        return self._quotas.get(name, ZERO_QUOTA)

    def potential(self, name: str) -> int:
        """Return the most that the node could have if nobody used anything."""
        parent = self._parents[name]
        if parent is None:
            return self.subtree(name)
        most = self._kept(name) + self.potential(parent)
        borrowing = self.quota(name).borrowing
        return most if borrowing is None else min(most, self.subtree(name) + borrowing)

    def available(self, name: str) -> int:
        """Return what it can have now beside all usage; negative if more is used than there is."""
        parent = self._parents[name]
        if parent is None:
            return self.subtree(name) - self.usage(name)
        kept, used = self._kept(name), self.usage(name)
        above = self.available(parent)
        borrowing = self.quota(name).borrowing
        if borrowing is not None:
            above = min(above, self.subtree(name) - kept - max(0, used - kept) + borrowing)
        return max(0, kept - used) + above

    def own_left(self, name: str) -> int:
        """Return how much of its own quota is not used, including what others have borrowed until it is reclaimed."""
        return max(0, self.quota(name).nominal - self.usage(name))

    def borrowed(self, name: str) -> int:
        """Return what the node uses beyond its own quota."""
        return max(0, self.usage(name) - self.subtree(name))

    def _kept(self, name: str) -> int:
        """Return what the node never lends, because of its lending limit."""
        lending = self.quota(name).lending
        return 0 if lending is None else max(0, self.subtree(name) - lending)

    def _subtree(self, name: str) -> int:
        return self.quota(name).nominal + sum(self.subtree(child) - self._kept(child) for child in self._children[name])

    def _usage(self, name: str) -> int:
        return self._own_usage.get(name, 0) + sum(
            max(0, self.usage(child) - self._kept(child)) for child in self._children[name]
        )
