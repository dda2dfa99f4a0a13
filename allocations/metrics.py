"""What Prometheus reads of leases: what is used beyond them, and what is held and not charged."""

from collections.abc import Iterator

from django.db.models import Count, Q
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from allocations.lease_excess import HolderKind
from allocations.models import LeaseExcess
from allocations.reconcile import unbilled


class LeaseMetrics(Collector):
    """Eight queries at each scrape."""

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
        free = GaugeMetricFamily(
            "gpu_portal_unbilled", "Holders of slices that the ledger has no open interval for.", labels=["holder"]
        )
        free.add_metric([HolderKind.ALLOCATION.value], len(unbilled.allocations()))
        free.add_metric([HolderKind.JOB.value], len(unbilled.jobs()))
        yield from (now, ever, free)
