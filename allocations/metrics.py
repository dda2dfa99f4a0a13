"""Prometheus metrics of allocations, waits, GPUs and costs; of leases, of the ledger's balance, and of etcd."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from allocations.capacity import pool_use
from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from allocations.domain.phases import Phase
from allocations.lifecycle.lease_excess import HolderKind
from allocations.models import Allocation, LeaseExcess
from allocations.reconcile import etcd_monitor, mirror
from allocations.reconcile.metering import unbilled
from portal.clusters import registry
from portal.core import clock
from portal.tenants import object_limits
from portal.tenants.models import Project
from quotas.costs import ledger, selectors
from quotas.metering import clock_skew, ledger_starts, proofs

QUANTILES = (0.5, 0.95)
WAITS = """
    SELECT percentile_cont(%s) WITHIN GROUP (
        ORDER BY greatest(0, extract(epoch FROM held_at - coalesce(starts_at, created_at))))
    FROM allocations_allocation WHERE created_at >= %s AND held_at >= %s
"""


class LeaseMetrics(Collector):
    """Metrics of use beyond leases and of uncharged use; two queries per scrape, and seven for each cluster."""

    def collect(self) -> Iterator[Metric]:
        confirmed = LeaseExcess.objects.filter(confirmed_at__isnull=False).order_by().values("holder_kind")
        counts = confirmed.annotate(ever=Count("pk"), now=Count("pk", filter=Q(over_at=None)))
        count_of = {row["holder_kind"]: row for row in counts}
        now = GaugeMetricFamily(
            "gpu_portal_over_lease",
            "Holders that use more than their lease, as the API server confirmed.",
            labels=["holder"],
        )
        ever = CounterMetricFamily(
            "gpu_portal_over_lease_confirmed", "How often use beyond a lease was confirmed.", labels=["holder"]
        )
        for kind in HolderKind:
            row = count_of.get(kind.value, {"now": 0, "ever": 0})
            now.add_metric([kind.value], row["now"])
            ever.add_metric([kind.value], row["ever"])
        uncharged = GaugeMetricFamily(
            "gpu_portal_unbilled", "Holders of slices that the ledger has no open interval for.", labels=["holder"]
        )
        clusters = registry.slugs()
        uncharged.add_metric(
            [HolderKind.ALLOCATION.value], sum(len(unbilled.allocations(cluster)) for cluster in clusters)
        )
        uncharged.add_metric([HolderKind.JOB.value], sum(len(unbilled.jobs(cluster)) for cluster in clusters))
        yield from (now, ever, uncharged)


class UseMetrics(Collector):
    """Metrics of what is requested, waits and is held; three queries per scrape, and those of the fleet."""

    def collect(self) -> Iterator[Metric]:
        live = Allocation.objects.filter(ended_at=None).order_by()
        phases = GaugeMetricFamily("gpu_portal_allocations", "Live allocations.", labels=["team", "phase"])
        for team, phase, count in live.values_list("project__team__slug", "phase").annotate(Count("pk")):
            phases.add_metric([team, phase], count)
        now = clock.now()
        oldest = GaugeMetricFamily(
            "gpu_portal_oldest_queued_seconds", "How long the longest queued allocation waits.", labels=["team"]
        )
        queued = live.filter(phase=Phase.QUEUED.value).values_list("project__team__slug")
        for team, since in queued.annotate(Min("phase_since")):
            oldest.add_metric([team], (now - since).total_seconds())
        yield from (phases, oldest, self._waits(), self._pools())

    def _waits(self) -> GaugeMetricFamily:
        found = GaugeMetricFamily(
            "gpu_portal_wait_seconds",
            "From the request, or its start time, until held, of what was requested within a week and held within an "
            "hour.",
            labels=["quantile"],
        )
        now = clock.now()
        with connection.cursor() as cursor:
            cursor.execute(WAITS, [list(QUANTILES), now - timedelta(days=7), now - timedelta(hours=1)])
            (values,) = cursor.fetchone()
        for quantile, value in zip(QUANTILES, values or (), strict=False):
            found.add_metric([str(quantile)], value)
        return found

    def _pools(self) -> GaugeMetricFamily:
        found = GaugeMetricFamily(
            "gpu_portal_pool_units",
            "Units of a pool: total, held by allocations and queued Jobs, unmanaged, or blocked by their node.",
            labels=["pool", "state"],
        )
        capacity = fleet(settings.FLEET_MAX_AGE_S)
        for one in pool_use.of_fleet(capacity, Availability(fleet=capacity).usage):
            for state in ("total", "held", "unmanaged", "blocked"):
                found.add_metric([one.pool.key, state], float(getattr(one, state)))
        return found


class CostMetrics(Collector):
    """Metrics of this month's use and cost; two queries per scrape. What has no price has no cost."""

    def collect(self) -> Iterator[Metric]:
        hours = GaugeMetricFamily("gpu_portal_month_gpu_hours", "GPU-hours of this month (UTC).", labels=["team"])
        cost = GaugeMetricFamily("gpu_portal_month_cost", "Their cost.", labels=["team", "currency"])
        now, currency = clock.now(), selectors.currency()
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        for one in ledger.sums([month, max(now, month + timedelta(seconds=1))], ["team"], {}, now):
            hours.add_metric(list(one.names), float(one.usage.gpu_hours))
            cost.add_metric([*one.names, currency], float(one.usage.priced_cost))
        yield from (hours, cost)


class BalanceMetrics(Collector):
    """Metrics of the proof that the ledger adds up, and of clocks; four queries per scrape, and two while a cluster has
    no proof.

    A cluster without a ledger has no age.
    """

    def collect(self) -> Iterator[Metric]:
        labels = ["cluster"]
        failed = GaugeMetricFamily(
            "gpu_portal_unbalanced_hours", "Hours in which the ledger does not add up.", labels=labels
        )
        age = GaugeMetricFamily(
            "gpu_portal_balance_proof_age_seconds",
            "Since the end of the newest hour whose balance was checked, or since the ledger began.",
            labels=labels,
        )
        now, clusters = clock.now(), registry.slugs()
        summaries = {one.cluster: one for one in proofs.summaries()}
        began = ledger_starts.first_hours() if set(clusters) - summaries.keys() else {}
        for cluster in clusters:
            summary = summaries.get(cluster)
            failed.add_metric([cluster], summary.failed if summary else 0)
            if since := summary.until if summary else began.get(cluster):
                age.add_metric([cluster], (now - since).total_seconds())
        skew = GaugeMetricFamily(
            "gpu_portal_clock_skew_seconds", "How far the API server is ahead of the watcher's clock.", labels=labels
        )
        for one in clock_skew.current():
            skew.add_metric([one.cluster_id], one.seconds)
        yield failed
        yield from (family for family in (age, skew) if family.samples)


class MirrorMetrics(Collector):
    """How old the mirror of each cluster is; one query per scrape."""

    def collect(self) -> Iterator[Metric]:
        now = clock.now()
        age = GaugeMetricFamily(
            "gpu_portal_mirror_age_seconds", "Since the time up to which leases are mirrored.", labels=["cluster"]
        )
        for cluster, at in mirror.leases_seen_at().items():
            age.add_metric([cluster], (now - at).total_seconds())
        if age.samples:
            yield age


class StoreMetrics(Collector):
    """Metrics of the size of etcd's database; two queries per scrape, and two for each cluster.

    An unknown size is left out.
    """

    def collect(self) -> Iterator[Metric]:
        labels = ["cluster"]
        size = GaugeMetricFamily(
            "gpu_portal_cluster_store_bytes", "Size of etcd's database, as the API server tells it.", labels=labels
        )
        quota = GaugeMetricFamily(
            "gpu_portal_cluster_store_quota_bytes", "etcd's quota, as ETCD_QUOTA_BYTES states it.", labels=labels
        )
        refused = GaugeMetricFamily(
            "gpu_portal_cluster_store_refused_writes",
            "Targets that cannot be written because etcd has no space.",
            labels=labels,
        )
        for cluster in registry.slugs():
            store = etcd_monitor.current(cluster)
            if store.size_bytes is not None:
                size.add_metric([cluster], store.size_bytes)
            quota.add_metric([cluster], store.quota_bytes)
            refused.add_metric([cluster], store.refused_writes)
        yield from (family for family in (size, quota, refused) if family.samples)
        rows = Project.objects.filter(archived_at=None).values_list("object_limits", "adopted", "config_size_kib")
        counts = ((object_limits.numbers(changed, is_adopted=adopted), size) for changed, adopted, size in rows)
        kib = sum(object_limits.stored_kib(numbers, size) for numbers, size in counts)
        yield GaugeMetricFamily(
            "gpu_portal_cluster_store_projects_bytes",
            "What all projects may store in etcd together: numbers of objects times sizes.",
            kib * 1024,
        )


COLLECTORS = (LeaseMetrics, UseMetrics, CostMetrics, BalanceMetrics, StoreMetrics, MirrorMetrics)
