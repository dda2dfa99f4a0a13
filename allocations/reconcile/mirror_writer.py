"""Records observations of the watcher: writes the mirror, the ledger, and the work queue.

Each batch is one transaction: the mirror, the ledger and the work queue change together or not at all. After a failure
the watcher lists again and repeats the batch. An observation has the object's revision, so an old or repeated one
changes nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import structlog
from django.db import connection, transaction

from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import Kind, Observation
from allocations.domain.objects import Ref
from allocations.models import AppliedObject, MirrorObject, WatchState
from allocations.reconcile import batch_state, change_targets, mirror, mirror_rows
from allocations.reconcile.batch_state import SHOW_HOLDS, BatchState
from allocations.reconcile.engine.plan import DELETED
from allocations.reconcile.mirror_change import Change, with_kept_facts
from allocations.reconcile.mirror_rows import Position
from allocations.reconcile.recorder import Seen, Snapshots
from allocations.reconcile.recorders import RECORDERS
from allocations.reconcile.usage_pace import UsagePace
from allocations.reconcile.watch_epoch import EpochOver
from portal.core.writing import write_rows
from portal.workqueue import queue as workqueue
from portal.workqueue.targets import Target
from quotas.metering import outages

log = structlog.get_logger(__name__)

BATCH_SIZE = 500
"""Number of objects of a list that are recorded at once."""
SHOW_LEDGER = SHOW_HOLDS | {"Workload", "Node", "ResourceSlice"}
"""Kinds from which the ledger is written."""


def record_observations(
    cluster: str,
    observations: Sequence[Observation],
    usage: UsagePace | None = None,
    epoch: int | None = None,
    positions: Sequence[Position] = (),
    *,
    is_first: bool = False,
) -> int:
    """Record a batch of observations in order; return how many changed fields that the portal reads.

    Nodes whose foreign use changes are left to ``usage`` to enqueue; without it they are counted at once. With
    ``epoch``, others are kept from writing the mirror until the transaction ends. ``positions`` are those up to which
    the mirror is complete with these observations. ``is_first`` says that nobody had seen objects of their kind before.

    Raises EpochOver, with nothing recorded, if the epoch is over.
    """
    if not observations:
        return 0
    with transaction.atomic(savepoint=False):
        state = batch_state.read(cluster, observations, epoch, is_first=is_first)
        observations = list(with_kept_facts(observations, state.rows))
        state.read_holders_of(Change(o, state.rows.get(o.ref)) for o in observations)
        affected: set[Target] = set()
        seen: list[Seen] = []
        for observation in observations:
            change = Change(observation, state.rows.get(observation.ref))
            if change.is_relevant and not change.is_stale:
                state.wrote(observation.ref, _row(cluster, change))
                seen.append(_seen(state, change))
                affected |= {target for recorder in RECORDERS for target in recorder.each(state, seen[-1]) or ()}
        affected |= {target for recorder in RECORDERS for target in recorder.batch(state, seen) or ()}
        _finish(state, affected, positions)
        if nodes := change_targets.nodes_with_other_use(cluster, (one.change for one in seen)):
            usage = usage or UsagePace(cluster)
            usage.changed(nodes)
            usage.enqueue_due()
    return len(seen)


def _finish(state: BatchState, affected: Collection[Target], positions: Sequence[Position]) -> None:
    """Write the mirror's rows, enqueue the targets and record the positions, in one statement; none if there is
    nothing of them.
    """
    statements = state.unwritten()
    if positions:
        statements.append(mirror_rows.sync(state.cluster, positions))
    if affected:
        enqueued, *_ = write_rows([], workqueue.enqueue_statement(*affected), *statements)
        workqueue.wake(enqueued)
        for one in enqueued:
            if one.request_id:
                log.info("watch.enqueued", target=one.target, request_id=one.request_id)
    elif statements:
        write_rows([], *statements)


def record_sync(cluster: str, *positions: Position, epoch: int | None = None) -> None:
    """Record that the cluster's mirror of each kind is complete up to this revision, at this time.

    Raises EpochOver, with nothing recorded, if there is an ``epoch`` and it is over. One statement.
    """
    statement = mirror_rows.sync(cluster, positions, epoch)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        if epoch is not None and not cursor.rowcount:
            raise EpochOver(f"epoch {epoch} is over")


def record_list(
    cluster: str, kind: Kind, observations: Sequence[Observation], resource_version: int, listed_at: datetime
) -> None:
    """Record a full list: objects of the mirror that it lacks are gone, those too of whose names it has others. Changes
    are dated at the last complete mirror.

    All in one transaction, in batches, so that the mirror's rows are not in memory all at once.

    Raises StoreRestored, with nothing recorded, if the list or an object in it is older than the mirror.
    """
    with transaction.atomic():
        state = WatchState.objects.filter(cluster=cluster, kind=kind.name).first()
        last_seen_at = state.synced_at if state else listed_at
        listed = {o.ref: o for o in observations}
        _check_revision(kind.name, resource_version, state.resource_version if state else 0)
        missing = []
        rows = MirrorObject.objects.filter(cluster=cluster, kind=kind.name)
        for row in rows.only("namespace", "name", "uid", "allocation", "resource_version", "seen_at").iterator():
            ref = Ref(kind.name, row.namespace, row.name)
            if found := listed.get(ref):
                _check_revision(f"{kind.name} {row.namespace}/{row.name}", found.resource_version, row.resource_version)
                if found.uid == row.uid:
                    continue
            gone = Observation(
                ref=ref,
                uid=row.uid,
                resource_version=resource_version,
                at=max(last_seen_at, row.seen_at),
                live=False,
                gone=True,
                allocation=row.allocation,
            )
            missing.append(gone)
        record_observations(cluster, missing)
        for start in range(0, len(observations), BATCH_SIZE):
            batch = [replace(o, at=last_seen_at) for o in observations[start : start + BATCH_SIZE]]
            record_observations(cluster, batch, is_first=state is None)
        for recorder in RECORDERS:
            recorder.listed(cluster, kind.name, last_seen_at)
        if kind.name in SHOW_LEDGER:
            outages.record(cluster, kind.name, last_seen_at, listed_at)
        record_sync(cluster, (kind, resource_version, listed_at))
        workqueue.enqueue(*change_targets.missing_object_targets(cluster, kind, listed, resource_version))


def _check_revision(subject: str, listed: int, recorded: int) -> None:
    """Raise StoreRestored if a kind or an object is listed at an earlier revision than the mirror has.

    After ``etcdutl snapshot restore --bump-revision`` the revision of the list is higher than before; the objects of
    the backup still have their old ones.
    """
    if listed < recorded:
        raise StoreRestored(f"{subject} was seen at revision {recorded} and is listed at {listed}")


def reset_revisions(cluster: str) -> None:
    """Reset the revisions of a cluster's observed and applied objects, so that any list counts as newer.

    Called after a restore of etcd. Until its kind is listed, an object counts neither as existing nor as gone, and one
    that was being deleted may exist undeleted. Times of observation stay.
    """
    MirrorObject.objects.filter(cluster=cluster).update(resource_version=0)
    WatchState.objects.filter(cluster=cluster).update(resource_version=0)
    applied = AppliedObject.objects.filter(cluster=cluster)
    applied.update(resource_version=1)
    applied.filter(intent=DELETED).update(intent="")


def _row(cluster: str, change: Change) -> MirrorObject | None:
    """Return the mirror's row of the object as it is now, another instance than ``change.old``; None if it is gone."""
    new = change.new
    if new.gone:
        return None
    return MirrorObject(
        cluster_id=cluster,
        kind=new.ref.kind,
        namespace=new.ref.namespace,
        name=new.ref.name,
        uid=new.uid,
        resource_version=new.resource_version,
        digest=new.digest,
        allocation=new.allocation,
        deleting=new.deleting,
        facts=new.facts or {},
        seen_at=new.at,
    )


def _seen(state: BatchState, change: Change) -> Seen:
    """Return the change with the allocations that it refers to, by name, and with their objects."""
    namespace, kind = change.new.ref.namespace, change.new.ref.kind
    rows = [row for name in sorted(change.allocations) if (row := state.holders.get((namespace, name)))]
    snapshots = None
    if rows and kind in SHOW_HOLDS:
        after = state.holds(namespace, rows)
        old = mirror.observed_object(change.old) if change.old else None
        snapshots = Snapshots(after.with_object(change.new.ref, old), after)
    return Seen(change, rows, snapshots, change_targets.is_own_write(change, state.applied))
