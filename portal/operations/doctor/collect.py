"""Reads the facts that the checks are about: from the database, Redis and the API servers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.kinds import KINDS
from allocations.cluster.preflight.types import Finding
from allocations.domain.phases import Phase
from allocations.models import Allocation, LeaseExcess, MirrorObject
from allocations.reconcile import etcd_monitor, mirror
from allocations.reconcile.metering import unbilled
from portal.audit import grants
from portal.clusters import registry
from portal.core import clock, heartbeat
from portal.core.models import AuditEntry, WorkItem
from portal.health import EXPECTED, missing_migrations, work_queue
from portal.http import counters
from portal.operations.doctor.checks import SHOWN, run_checks
from portal.operations.doctor.facts import (
    ClusterFacts,
    DatabaseFacts,
    Facts,
    FailingTarget,
    Proof,
    RedisFacts,
    Stuck,
    Thresholds,
    Work,
)
from portal.tenants import access
from portal.tenants.access import Person
from portal.tenants.models import Project
from portal.workqueue import wakeups
from quotas.metering import clock_skew, proofs

PASSING = (Phase.STARTING, Phase.LEAVING, Phase.RELEASING)
STUCK_AFTER = timedelta(minutes=10)
"""Beyond the deadlines of a start and of the grace period of pods."""
CONNECTIONS = """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        current_setting('max_connections')::integer, clock_timestamp()
"""


def found_now(user: Person) -> list[Finding]:
    """Return what the checks find, for operators and auditors; raise Forbidden for everybody else."""
    access.require(user, "platform.view", None)
    return run_checks(with_api_servers(facts()))


def facts() -> Facts:
    """Return what database and Redis tell; a fixed number of queries for each cluster."""
    try:
        database: DatabaseFacts | str = _database()
    except DatabaseError as error:
        database = " ".join(str(error).split())
    thresholds = Thresholds(settings.STALE_S, settings.AUDIT_SEAL_S, mirror.RECENT.total_seconds())
    return Facts(clock.now(), database, _redis(), thresholds)


def with_api_servers(found: Facts) -> Facts:
    """Return the facts with what this process's API server answers to a request that the watcher sends, too."""
    if isinstance(found.database, str):
        return found
    clusters = [
        replace(one, refused=_refused(one.name)) if one.name == registry.own() else one
        for one in found.database.clusters
    ]
    return replace(found, database=replace(found.database, clusters=clusters))


def _database() -> DatabaseFacts:
    missing = missing_migrations()
    if missing:
        return DatabaseFacts(missing_migrations=missing)
    with connection.cursor() as cursor:
        cursor.execute(CONNECTIONS)
        connections, most, now = cursor.fetchone()
    ahead_s = (now - clock.now()).total_seconds() if clock.frozen_at() is None else 0.0
    beats, queue = heartbeat.last(), work_queue()
    failing = WorkItem.objects.filter(attempts__gt=0).order_by("-attempts", "target")[:SHOWN]
    return DatabaseFacts(
        changeable=grants.changes_allowed(),
        connections=connections,
        max_connections=most,
        ahead_s=ahead_s,
        heartbeats={name: beats.get(name) for name in EXPECTED},
        work=Work(
            queue.due,
            queue.lag_s,
            queue.failing,
            [FailingTarget(one.target, one.attempts, one.error) for one in failing],
        ),
        clusters=list(_clusters()),
        stuck=[*_stuck_allocations(), *_stuck_namespaces()],
        over_lease=LeaseExcess.objects.filter(confirmed_at__isnull=False, over_at=None).count(),
        unsealed_since=AuditEntry.objects.filter(seal=None).order_by("at").values_list("at", flat=True).first(),
    )


def _clusters() -> Iterator[ClusterFacts]:
    seen = mirror.leases_seen_at()
    skews = {one.cluster_id: one.seconds for one in clock_skew.current()}
    proved = {one.cluster: Proof(one.until, one.failed, one.missing) for one in proofs.summaries()}
    for name in registry.slugs():
        yield ClusterFacts(
            name=name,
            mirrored_at=seen.get(name),
            store=etcd_monitor.current(name),
            skew_s=skews.get(name),
            uncharged=len(unbilled.allocations(name)) + len(unbilled.jobs(name)),
            proof=proved.get(name),
        )


def _stuck_allocations() -> Iterator[Stuck]:
    rows = Allocation.objects.filter(
        ended_at=None, phase__in=PASSING, phase_since__lt=clock.now() - STUCK_AFTER, needs_attention=False
    )
    for row in rows.select_related("project").order_by("phase_since"):
        yield Stuck(f"{row.project.slug}/{row.name}", row.phase, row.phase_since, row.message)


def _stuck_namespaces() -> Iterator[Stuck]:
    """Yield the namespaces of projects that were archived; an adopted one outlives its project."""
    rows = Project.objects.filter(adopted=False, archived_at__lt=clock.now() - STUCK_AFTER)
    archived = {(row.cluster_id, row.namespace): row for row in rows}
    found = MirrorObject.objects.filter(kind="Namespace", name__in={name for _, name in archived})
    for row in found.order_by("name"):
        if project := archived.get((row.cluster_id, row.name)):
            yield Stuck(f"namespace {row.name}", "still there", project.archived_at or clock.now())


def _redis() -> RedisFacts:
    try:
        client = counters.client()
        client.ping()
        return RedisFacts(
            eviction=_or_empty(lambda: client.info("memory")["maxmemory_policy"]), waiting=wakeups.waiting()
        )
    except (redis.RedisError, *wakeups.FAILURES) as error:
        return RedisFacts(error=" ".join(str(error).split()))


def _or_empty(read: Callable[[], str]) -> str:
    """Return what is read; "" where a managed Redis does not tell it."""
    try:
        return str(read())
    except (redis.ResponseError, KeyError):
        return ""


def _refused(cluster: str) -> str:
    try:
        connect(cluster).revision(KINDS["Workload"])
    except (ClusterRefused, ClusterUnavailable, OSError, ValueError, LookupError) as error:
        return " ".join(str(error).split())
    return ""
