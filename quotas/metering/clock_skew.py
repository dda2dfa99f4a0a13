"""Stores and reads how the clocks of clusters differ from their watchers': the ledger has times of both."""

from portal.core import clock
from quotas.metering.models import ClockSkew


def record(cluster: str, seconds: float, error: float) -> None:
    """Record that the cluster's API server is ahead of the watcher's clock by ``seconds``, within ``error``; one
    query.
    """
    row = ClockSkew(cluster_id=cluster, seconds=seconds, error=error, measured_at=clock.now())
    ClockSkew.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["cluster"],
        update_fields=["seconds", "error", "measured_at"],
    )


def current() -> list[ClockSkew]:
    """Return the last measurement of each cluster; one query."""
    return list(ClockSkew.objects.order_by("cluster"))
