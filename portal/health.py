"""The probes /livez and /readyz, and /metrics."""

import hmac
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from allocations import metrics as allocation_metrics
from allocations.domain.etcd_usage import Level, Store
from allocations.reconcile import etcd_monitor
from portal.clusters import registry
from portal.core import clock, heartbeat
from portal.core.models import WorkItem
from portal.http import address_limits, counters
from portal.workqueue import queue as workqueue

EXPECTED = ("worker", "watcher")
OK = "ok"
LOOK_EVERY_S = 1.0


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Return 200 as long as the process answers; depends on nothing else."""
    return HttpResponse(OK, content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Return 503 without the database or its migrations, else 200.

    `status` is `ready`, or `degraded` while Redis, worker or watcher are silent or etcd is nearly full: the portal then
    serves pages and accepts requests, but allocations may not proceed. Looked at once in `LOOK_EVERY_S`, whoever asks.
    """
    global _readiness
    if time.monotonic() >= _readiness.until:
        _readiness = _look()
    return JsonResponse(_readiness.document, status=200 if _readiness.serving else 503)


@dataclass(frozen=True)
class Readiness:
    """What /readyz answers, and until when."""

    serving: bool
    document: dict[str, Any]
    until: float


def _look() -> Readiness:
    vital = database_checks()
    serving = all(value == OK for value in vital.values())
    checks = vital | (working_checks() if serving else {})
    ready = all(value == OK for value in checks.values())
    status = "ready" if ready else "degraded" if serving else "unready"
    return Readiness(serving, {"status": status, "checks": checks}, time.monotonic() + LOOK_EVERY_S)


_readiness = Readiness(False, {}, 0.0)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics in Prometheus' text format, read from the database at each scrape.

    404 without a `METRICS_TOKEN` setting; 401, or 429 for too many from one address, without the token.
    """
    if not settings.METRICS_TOKEN:
        return HttpResponseNotFound("METRICS_TOKEN is not set.\n", content_type="text/plain")
    if not _sent_metrics_token(request):
        return _metrics_refused(address_limits.count_wrong_token(request))
    registry = CollectorRegistry(auto_describe=False)
    for collector in (Gauges, *allocation_metrics.COLLECTORS):
        registry.register(collector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def database_checks() -> dict[str, str]:
    try:
        missing = missing_migrations()
    except DatabaseError:
        return {"database": "does not answer"}
    return {"database": OK, "migrations": f"{missing} are not applied" if missing else OK}


def missing_migrations() -> int:
    """Return how many migrations of this release are not applied. Raises DatabaseError."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def working_checks() -> dict[str, str]:
    last, now = heartbeat.last(), clock.now()
    silent = {}
    for name in EXPECTED:
        age_s = (now - last[name]).total_seconds() if name in last else None
        silent[name] = OK if age_s is not None and age_s <= settings.STALE_S else _silence(age_s)
    return {"redis": redis_check(), **silent, "cluster_store": store_check(map(etcd_monitor.current, registry.slugs()))}


def store_check(stores: Iterable[Store]) -> str:
    """Return `ok` unless a cluster's etcd is 85 % full; an API server that does not tell the size is no fault."""
    return "; ".join(store.summary for store in stores if store.level in (Level.CRITICAL, Level.FULL)) or OK


def redis_check() -> str:
    try:
        counters.client().ping()
    except redis.RedisError:
        return "does not answer"
    return OK


def _sent_metrics_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), settings.METRICS_TOKEN.encode())


def _metrics_refused(wait_s: int) -> HttpResponse:
    if wait_s:
        headers, words = {"Retry-After": str(wait_s)}, f"Too many wrong tokens. Try again in {wait_s} seconds.\n"
        return HttpResponse(words, content_type="text/plain", status=429, headers=headers)
    headers = {"WWW-Authenticate": 'Bearer realm="gpu-portal metrics"'}
    words = "Send Authorization: Bearer with the token that METRICS_TOKEN holds.\n"
    return HttpResponse(words, content_type="text/plain", status=401, headers=headers)


def _silence(age_s: float | None) -> str:
    return "has not been seen" if age_s is None else f"silent for {age_s:.0f} s"


@dataclass(frozen=True)
class WorkQueue:
    """How many targets are due, and how many failed last; ``lag_s`` is how long the longest due one waits."""

    due: int = 0
    failing: int = 0
    lag_s: float = 0.0


def work_queue() -> WorkQueue:
    """Return the state of the work queue; three queries."""
    return WorkQueue(
        due=WorkItem.objects.filter(due_at__lte=workqueue.database_now()).count(),
        failing=WorkItem.objects.filter(attempts__gt=0).count(),
        lag_s=workqueue.lag_s(),
    )


class Gauges(Collector):
    """Metrics of the work queue."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now, found = clock.now(), work_queue()
        yield GaugeMetricFamily("gpu_portal_due_targets", "Targets whose time has come.", found.due)
        yield GaugeMetricFamily("gpu_portal_failing_targets", "Targets whose last reconcile failed.", found.failing)
        yield GaugeMetricFamily("gpu_portal_due_lag_seconds", "How long the longest due target waits.", found.lag_s)
        ages = GaugeMetricFamily("gpu_portal_heartbeat_age_seconds", "Since a process last worked.", labels=["process"])
        for name, at in heartbeat.last().items():
            ages.add_metric([name], (now - at).total_seconds())
        yield ages
