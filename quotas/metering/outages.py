"""Records and reads outages of the recorder: times in which nobody watched a cluster."""

from collections import defaultdict
from datetime import datetime, timedelta

from portal.core import clock
from quotas.metering.models import RecorderOutage

MIN_OUTAGE = timedelta(seconds=20)
"""A watch reports its position at least every ten seconds, and positions are written every two."""
Span = tuple[datetime, datetime]


def record(cluster: str, kind: str, last_seen_at: datetime, listed_at: datetime) -> None:
    """Record that nobody watched the kind between these times, if that is longer than usual; one query then."""
    if listed_at - last_seen_at >= MIN_OUTAGE:
        row = RecorderOutage(cluster_id=cluster, kind=kind, start=last_seen_at, end=listed_at, recorded_at=clock.now())
        RecorderOutage.objects.bulk_create([row], ignore_conflicts=True)


def spans(start: datetime, end: datetime) -> dict[str, list[Span]]:
    """Return by cluster the times of ``[start, end)`` in which at least one kind was not watched; one query."""
    found: dict[str, list[Span]] = defaultdict(list)
    rows = RecorderOutage.objects.filter(end__gt=start, start__lt=end).order_by("start")
    for cluster, begin, until in rows.values_list("cluster", "start", "end"):
        begin, until, merged = max(begin, start), min(until, end), found[cluster]
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], until)
        else:
            merged.append((begin, until))
    return dict(found)
