import signal
import threading
import time
from collections.abc import Sequence

import structlog
from django.core.management.base import BaseCommand
from django.db import close_old_connections, connection
from django.db.models import Q

from allocations.cluster import watcher
from allocations.cluster.client import connect
from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import watch_epoch
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, reset_revisions
from portal.clusters import registry
from portal.core import heartbeat
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

log = structlog.get_logger(__name__)
BEAT_S = 5.0
STANDBY_S = 1.0


class Command(BaseCommand):
    help = (
        "Mirror the cluster into the database and enqueue what has to be reconciled. One process does; others stand by."
    )

    def handle(self, *args: object, **options: object) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        cluster, stands_by = registry.own(), False
        while not stop.is_set():
            try:
                if not stands_by:
                    registry.register()
                epoch = watch_epoch.begin(cluster)
                if epoch is not None:
                    run_epoch(cluster, epoch, stop)
                elif not stands_by:
                    log.info("watch.standby")
                stands_by = epoch is None
                stop.wait(STANDBY_S if stands_by else 0)
            except Exception as error:
                # Whatever it was, the next epoch lists all kinds anew: nothing seen so far has to be trusted. The lock
                # goes with the connection.
                log.exception("watch.session_ended", error=str(error))
                connection.close()
                stop.wait(1.0)
            close_old_connections()


def run_epoch(cluster: str, epoch: int, stop: threading.Event) -> None:
    """Mirror the cluster until ``stop``, or until etcd is found restored from a backup: then the next epoch begins, in
    which nothing seen so far is taken for newer than what is listed."""
    log.info("watch.epoch", cluster=cluster, number=epoch)
    try:
        watcher.run(connect(cluster), Recorder(cluster, epoch), stop, Beat(cluster))
    except StoreRestored as error:
        log.warning("watch.store_restored", epoch=epoch, error=str(error))
        with watch_epoch.writing(cluster, epoch):
            reset_revisions(cluster)
        stop.wait(STANDBY_S)


class Recorder:
    """Records batches of one epoch of a cluster in their order, and logs once when every kind has been listed."""

    def __init__(self, cluster: str, epoch: int) -> None:
        self._cluster, self._epoch = cluster, epoch
        self._missing = {kind.name for kind in KINDS.values()}

    def __call__(self, batch: Sequence[watcher.Item]) -> None:
        waiting: list[Observation] = []
        synced: dict[str, watcher.Synced] = {}
        for item in batch:
            match item:
                case watcher.Listed(kind, observations, revision, at):
                    self._record(waiting, synced)
                    waiting, synced = [], {}
                    with watch_epoch.writing(self._cluster, self._epoch):
                        record_list(self._cluster, kind, observations, revision, at)
                    self._listed(kind.name)
                case watcher.Synced(kind):
                    synced[kind.name] = item
                    if item.observation:
                        waiting.append(item.observation)
        self._record(waiting, synced)

    def _record(self, waiting: list[Observation], synced: dict[str, watcher.Synced]) -> None:
        """In one transaction: whoever looks because of what is gone must find the mirror complete up to that."""
        with watch_epoch.writing(self._cluster, self._epoch):
            record_observations(self._cluster, waiting)
            record_sync(self._cluster, *((item.kind, item.resource_version, item.at) for item in synced.values()))

    def _listed(self, kind: str) -> None:
        if kind in self._missing:
            self._missing.remove(kind)
            if not self._missing:
                enqueue_everything(self._cluster)
                log.info("watch ready", kinds=len(KINDS))


def enqueue_everything(cluster: str) -> None:
    """Enqueue all live targets of the cluster, since changes may have been missed before the start.

    Archived projects are included if their namespace exists, since etcd may have been restored from a backup.
    """
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None).values_list("pk", flat=True)
    there = MirrorObject.objects.filter(cluster=cluster, kind="Namespace").values("name")
    projects = Project.objects.filter(Q(archived_at=None) | Q(namespace__in=there), cluster=cluster)
    workqueue.enqueue(
        targets.platform(cluster),
        targets.inventory(cluster),
        targets.adoption(cluster),
        *(targets.project(cluster, slug) for slug in projects.values_list("slug", flat=True)),
        *(targets.allocation(cluster, id_) for id_ in live),
    )


class Beat:
    """A sign of life every few seconds, from the loop itself; and since the mirror has moved on by then, a look at
    whether anything uses more than its lease."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._next = 0.0

    def __call__(self) -> None:
        if time.monotonic() >= self._next:
            heartbeat.beat("watcher")
            workqueue.enqueue(targets.leases(self._cluster))
            self._next = time.monotonic() + BEAT_S
