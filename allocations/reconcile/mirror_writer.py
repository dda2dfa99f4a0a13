"""Records observations of the watcher: writes the mirror, the ledger, and the work queue.

Each batch is one transaction: the mirror, the ledger and the work queue change together or not at all. After a failure
the watcher lists again and repeats the batch. An observation has the object's revision, so an old or repeated one
changes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection, transaction

from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import Kind, Observation
from allocations.domain.objects import Ref
from allocations.models import Allocation, AppliedObject, MirrorObject, WatchState
from allocations.reconcile import batch_state, change_targets, mirror, mirror_rows
from allocations.reconcile.batch_state import SHOW_HOLDS, BatchState
from allocations.reconcile.engine.plan import DELETED
from allocations.reconcile.metering import capacity_ledger, foreign_use, hold_use, job_ledger, ledger, pod_ends
from allocations.reconcile.metering.capacity_ledger import SHOW_CAPACITY
from allocations.reconcile.metering.foreign_use import Snapshots, UseChange
from allocations.reconcile.mirror_change import Change, with_kept_facts
from allocations.reconcile.mirror_rows import Position
from allocations.reconcile.usage_pace import UsagePace
from allocations.reconcile.watch_epoch import EpochOver
from portal.core.writing import write_rows
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.metering import outages
from quotas.metering.services import SlotHeld

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
        state = batch_state.read(cluster, observations, epoch)
        rows, applied, holders = state.rows, state.applied, state.holders
        observations = list(with_kept_facts(observations, rows))
        state.read_holders_of(Change(o, rows.get(o.ref)) for o in observations)
        affected: set[Target] = set()
        relevant: list[Change] = []
        uses: list[UseChange] = []
        for observation in observations:
            change = Change(observation, rows.get(observation.ref))
            if change.is_stale or not change.is_relevant:
                continue
            state.wrote(observation.ref, _row(cluster, change))
            relevant.append(change)
            if job_ledger.concerns(observation, change.old):
                state.write()
                job_ledger.record(cluster, observation, change.old)
            if observation.live and observation.ref.kind in SHOW_CAPACITY:
                state.write()
                capacity_ledger.record(cluster, [change])
            concerned = _concerned(change, holders)
            snapshots = _snapshots(state, change, concerned)
            is_known = change_targets.is_own_write(change, applied)
            affected |= _sync_ledger(state, change, concerned, snapshots, is_known=is_known, is_first=is_first)
            uses.append(foreign_use.change_of(cluster, change, holders, concerned, snapshots))
            hold_use.record(cluster, change, concerned, snapshots)
            affected |= change_targets.job_targets(cluster, change)
            affected |= change_targets.adoption_targets(cluster, change, holders)
        foreign_use.record(cluster, uses)
        for change in relevant:
            pod_ends.correct(cluster, change.new, change.old, _concerned(change, holders))
        if shown := [one for one in relevant if not one.new.live and one.new.ref.kind in SHOW_CAPACITY]:
            state.write()
            capacity_ledger.record(cluster, shown)
        affected |= change_targets.inventory_targets(cluster, relevant)
        affected |= change_targets.applied_object_targets(relevant, applied)
        _finish(state, affected, positions)
        if nodes := change_targets.nodes_with_other_use(cluster, relevant):
            usage = usage or UsagePace(cluster)
            usage.changed(nodes)
            usage.enqueue_due()
    return len(relevant)


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
        capacity_ledger.record_listed(cluster, kind.name, last_seen_at)
        foreign_use.record_listed(cluster, kind.name, last_seen_at)
        hold_use.record_listed(cluster, kind.name, last_seen_at)
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


def _concerned(change: Change, holders: Mapping[tuple[str, str], Allocation]) -> list[Allocation]:
    """Return the allocations that the change refers to, by name."""
    namespace = change.new.ref.namespace
    return [row for name in sorted(change.allocations) if (row := holders.get((namespace, name)))]


def _snapshots(state: BatchState, change: Change, rows: Sequence[Allocation]) -> Snapshots | None:
    """Return the objects of the allocations before and after the change; None if it cannot show what is held."""
    if not rows or change.new.ref.kind not in SHOW_HOLDS:
        return None
    after = state.holds(change.new.ref.namespace, rows)
    old = mirror.observed_object(change.old) if change.old else None
    return Snapshots(after.with_object(change.new.ref, old), after)


def _sync_ledger(
    state: BatchState,
    change: Change,
    rows: Sequence[Allocation],
    snapshots: Snapshots | None,
    *,
    is_known: bool,
    is_first: bool,
) -> set[Target]:
    """Update the ledger for the change; return the targets of the allocations that must be reconciled: those that it
    affects, and those whose intervals have changed. A reconcile that wrote the object itself (``is_known``) knows of
    it, but not yet which holds it shows.
    """
    changed: set[UUID] = set()
    if snapshots is not None:
        (before, after), at, live = snapshots, change.new.at, change.new.live
        differing = rows
        if live and not change.is_relabelled:
            differing = [row for row in rows if not ledger.is_same_hold(row, before, after)]
        try:
            if differing:
                changed = ledger.sync(differing, after, before if live or not is_first else None, at=at, live=live)
        except SlotHeld as error:
            log.warning("ledger.slot_held", error=str(error))
            changed = {row.pk for row in rows}
    affected = change.changed_holds | (set() if is_known else change.labelled_allocations)
    return {targets.allocation(state.cluster, row.pk) for row in rows if row.pk in changed or row.name in affected}
