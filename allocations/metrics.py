"""What Prometheus reads of leases: what is used beyond them now, and how often that was so."""

from collections.abc import Iterator

from django.db.models import Count, Q
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from allocations.lease_excess import HolderKind
from allocations.models import LeaseExcess


class LeaseMetrics(Collector):
    """One query at each scrape."""

    def collect(self) -> Iterator[Metric]:
        confirmed = LeaseExcess.objects.filter(confirmed_at__isnull=False).order_by().values("holder_kind")
        counts = confirmed.annotate(ever=Count("pk"), now=Count("pk", filter=Q(over_at=None)))
        found = {row["holder_kind"]: row for row in counts}
        now = GaugeMetricFamily(
            "gpu_portal_over_lease",
            "Holders that use more than their lease, as the API server confirmed.",
            labels=["holder"],
        )
        ever = CounterMetricFamily(
            "gpu_portal_over_lease_confirmed", "How often use beyond a lease was confirmed.", labels=["holder"]
        )
        for kind in HolderKind:
            row = found.get(kind.value, {"now": 0, "ever": 0})
            now.add_metric([kind.value], row["now"])
            ever.add_metric([kind.value], row["ever"])
        yield from (now, ever)
