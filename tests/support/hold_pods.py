"""Pods of holds in the ledger, as the watcher records them."""

from uuid import UUID, uuid4

from quotas.metering import hold_use
from quotas.metering.hold_use import Sighting
from tests.support.clusters import LOCAL
from tests.support.quotas import hour


def pods(holder: UUID, start: float, end: float | None) -> None:
    """Record that a hold had a pod in these hours."""
    hold_use.begin(LOCAL, [holder], Sighting(hour(start), 1, estimated=False))
    if end is not None:
        hold_use.end(LOCAL, [holder], Sighting(hour(end), 2, estimated=False))


def recorded_since(at: float) -> None:
    """Have the pods of the cluster's holds recorded from then on."""
    pods(uuid4(), at, at)
