import signal
import threading
import time
from collections.abc import Collection, Sequence

import structlog
from django.core.management.base import BaseCommand
from django.db import close_old_connections, connection
from django.db.models import Q

from allocations.cluster import watcher
from allocations.cluster.client import connect
from allocations.cluster.clock_skew import SkewMeter
from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import watch_epoch
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, reset_revisions
from allocations.reconcile.usage_pace import UsagePace
from portal.clusters import registry
from portal.core import alive, heartbeat, threads
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.metering import clock_skew

log = structlog.get_logger(__name__)
BEAT_S = 5.0
STANDBY_S = 1.0
SKEW_S = 60.0


class Command(BaseCommand):
    help = (
        "Mirror the cluster into the database and enqueue targets to reconcile. One process is active, others stand by."
    )

    def handle(self, *args: object, **options: object) -> None:
        threads.take_turns_often()
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        cluster, is_standby = registry.own(), False
        while not stop.is_set():
            alive.touch()
            try:
                if not is_standby:
                    registry.register()
                epoch = watch_epoch.begin(cluster)
                if epoch is not None:
                    run_epoch(cluster, epoch, stop)
                elif not is_standby:
                    log.info("watch.standby")
                is_standby = epoch is None
                stop.wait(STANDBY_S if is_standby else 0)
            except Exception as error:
                # The next epoch lists all kinds again, so no state of this one is needed. Closing the connection
                # releases the lock.
                log.exception("watch.session_ended", error=str(error))
                connection.close()
                stop.wait(1.0)
            close_old_connections()


def run_epoch(cluster: str, epoch: int, stop: threading.Event) -> None:
    """Mirror the cluster until ``stop``, or until a restore of etcd is detected; then reset the mirror's revisions."""
    log.info("watch.epoch", cluster=cluster, number=epoch)
    try:
        usage = UsagePace(cluster)
        client = connect(cluster)
        watcher.run(client, Recorder(cluster, epoch, usage), stop, Beat(cluster, usage, client.skew))
    except StoreRestored as error:
        log.warning("watch.store_restored", epoch=epoch, error=str(error))
        with watch_epoch.writing(cluster, epoch):
            reset_revisions(cluster)
        stop.wait(STANDBY_S)


class Recorder:
    """Records batches of one epoch of a cluster in their order, and logs once when every kind has been listed."""

    def __init__(self, cluster: str, epoch: int, usage: UsagePace) -> None:
        self._cluster, self._epoch, self._usage = cluster, epoch, usage
        self._missing = {kind.name for kind in KINDS.values()}

    def __call__(self, batch: watcher.Batch) -> None:
        waiting: list[Observation] = []
        synced: dict[str, watcher.Synced] = {}
        for item in batch.items:
            match item:
                case watcher.Listed(kind, observations, revision, at):
                    self._record(waiting, synced.values())
                    waiting, synced = [], {}
                    with watch_epoch.writing(self._cluster, self._epoch):
                        record_list(self._cluster, kind, observations, revision, at)
                    self._listed(kind.name)
                case watcher.Synced(kind, observation=observation):
                    if observation:
                        waiting.append(observation)
                    if batch.with_positions or (observation and observation.gone) or kind.name in synced:
                        synced[kind.name] = item
        self._record(waiting, synced.values())

    def _record(self, waiting: Sequence[Observation], synced: Collection[watcher.Synced]) -> None:
        """Record observations and sync in one transaction: the mirror is complete when a target is processed."""
        positions = [(item.kind, item.resource_version, item.at) for item in synced]
        if waiting:
            record_observations(self._cluster, waiting, self._usage, self._epoch, positions)
        elif positions:
            record_sync(self._cluster, *positions, epoch=self._epoch)

    def _listed(self, kind: str) -> None:
        if kind in self._missing:
            self._missing.remove(kind)
            if not self._missing:
                enqueue_everything(self._cluster)
                log.info("watch ready", kinds=len(KINDS))


def enqueue_everything(cluster: str) -> None:
    """Enqueue all live targets of the cluster, since changes before the start may have been missed.

    Archived projects are included if their namespace exists, since a restore of etcd may have brought it back.
    """
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None).values_list("pk", flat=True)
    namespaces = MirrorObject.objects.filter(cluster=cluster, kind="Namespace").values("name")
    projects = Project.objects.filter(Q(archived_at=None) | Q(namespace__in=namespaces), cluster=cluster)
    workqueue.enqueue(
        targets.platform(cluster),
        targets.inventory(cluster),
        targets.adoption(cluster),
        *(targets.project(cluster, slug) for slug in projects.values_list("slug", flat=True)),
        *(targets.allocation(cluster, id_) for id_ in live),
    )


class Beat:
    """Writes the watcher's heartbeat every few seconds, and enqueues the lease check, since the mirror has advanced.

    Each call has nodes counted too if a change of their use has waited long enough. Once a minute it writes how the
    clock of the API server differs.
    """

    def __init__(self, cluster: str, usage: UsagePace, meter: SkewMeter) -> None:
        self._cluster, self._usage, self._meter = cluster, usage, meter
        self._next, self._next_skew = 0.0, time.monotonic() + SKEW_S

    def __call__(self) -> None:
        self._usage.enqueue_due()
        if time.monotonic() >= self._next:
            alive.touch()
            heartbeat.beat("watcher")
            workqueue.enqueue(targets.leases(self._cluster))
            self._next = time.monotonic() + BEAT_S
        if time.monotonic() >= self._next_skew:
            if skew := self._meter.take():
                clock_skew.record(self._cluster, skew.seconds, skew.error)
            self._next_skew = time.monotonic() + SKEW_S
