"""Records observations of the watcher: writes the mirror, the ledger, and the work queue.

Each batch is one transaction: the mirror, the ledger and the work queue change together or not at all. After a failure
the watcher lists again and repeats the batch. An observation has the object's revision, so an old or repeated one
changes nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import Kind, Observation
from allocations.domain.objects import Ref
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, MirrorObject, WatchState
from allocations.reconcile import change_targets, mirror
from allocations.reconcile.engine import applied as applied_objects
from allocations.reconcile.engine.plan import DELETED
from allocations.reconcile.metering import capacity_ledger, foreign_use, job_ledger, ledger, pod_ends
from allocations.reconcile.metering.foreign_use import Snapshots, UseChange
from allocations.reconcile.mirror_change import Change, with_kept_facts
from allocations.reconcile.usage_pace import UsagePace
from portal.core.reading import Columns, read_tables
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.metering import outages
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)
BATCH_SIZE = 500
"""Number of objects of a list that are recorded at once."""
SHOW_HOLDS = frozenset({"ResourceClaim", "Pod", "ResourceQuota"})
"""Kinds that show whether a slice is held (``allocations.cluster.backends``); a lease only reserves."""
SHOW_LEDGER = SHOW_HOLDS | {"Workload", "Node", "ResourceSlice"}
"""Kinds from which the ledger is written."""


def record_observations(cluster: str, observations: Sequence[Observation], usage: UsagePace | None = None) -> int:
    """Record a batch of observations in order; return how many changed fields that the portal reads.

    Changes of foreign use are left to ``usage`` to enqueue; without it they enqueue the inventory at once.
    """
    if not observations:
        return 0
    with transaction.atomic(savepoint=False):
        rows, applied = _recorded(cluster, {o.ref for o in observations})
        observations = list(with_kept_facts(observations, rows))
        changes = [Change(o, rows.get(o.ref)) for o in observations]
        holders = _holders(cluster, changes)
        affected: set[Target] = set()
        relevant: list[Change] = []
        uses: list[UseChange] = []
        for observation in observations:
            change = Change(observation, rows.get(observation.ref))
            if change.is_stale or not change.is_relevant:
                continue
            rows[observation.ref] = _write(cluster, change)
            relevant.append(change)
            job_ledger.record(cluster, observation, change.old)
            if observation.live:
                capacity_ledger.record(cluster, [change])
            concerned = _concerned(change, holders)
            snapshots = _snapshots(cluster, change, concerned)
            is_known = change_targets.is_own_write(change, applied)
            affected |= _sync_ledger(cluster, change, concerned, snapshots, is_known=is_known)
            uses.append(foreign_use.change_of(cluster, change, holders, concerned, snapshots))
            affected |= change_targets.job_targets(cluster, change)
            affected |= change_targets.adoption_targets(cluster, change, holders)
        foreign_use.record(cluster, uses)
        for change in relevant:
            pod_ends.correct(cluster, change.new, change.old, _concerned(change, holders))
        capacity_ledger.record(cluster, [change for change in relevant if not change.new.live])
        affected |= change_targets.inventory_targets(cluster, relevant)
        affected |= change_targets.applied_object_targets(relevant, applied)
        workqueue.enqueue(*affected)
        if any(map(change_targets.is_foreign_use, relevant)):
            usage = usage or UsagePace(cluster)
            usage.changed()
            usage.enqueue_due()
    return len(relevant)


def record_sync(cluster: str, *states: tuple[Kind, int, datetime]) -> None:
    """Record that the cluster's mirror of each kind is complete up to this revision, at this time."""
    WatchState.objects.bulk_create(
        [
            WatchState(cluster_id=cluster, kind=kind.name, resource_version=revision, synced_at=at)
            for kind, revision, at in states
        ],
        update_conflicts=True,
        unique_fields=["cluster", "kind"],
        update_fields=["resource_version", "synced_at"],
    )


def record_list(
    cluster: str, kind: Kind, observations: Sequence[Observation], resource_version: int, listed_at: datetime
) -> None:
    """Record a full list: objects of the mirror that it lacks are gone. Changes are dated at the last complete mirror.

    All in one transaction, in batches, so that the mirror's rows are not in memory all at once.

    Raises StoreRestored, with nothing recorded, if the list or an object in it is older than the mirror.
    """
    with transaction.atomic():
        state = WatchState.objects.filter(cluster=cluster, kind=kind.name).first()
        last_seen_at = state.synced_at if state else listed_at
        listed = {o.ref: o.resource_version for o in observations}
        _check_revision(kind.name, resource_version, state.resource_version if state else 0)
        missing = []
        rows = MirrorObject.objects.filter(cluster=cluster, kind=kind.name)
        for row in rows.only("namespace", "name", "uid", "allocation", "resource_version", "seen_at").iterator():
            ref = Ref(kind.name, row.namespace, row.name)
            if ref in listed:
                _check_revision(f"{kind.name} {row.namespace}/{row.name}", listed[ref], row.resource_version)
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
            record_observations(cluster, batch)
        capacity_ledger.record_listed(cluster, kind.name, last_seen_at)
        foreign_use.record_listed(cluster, kind.name, last_seen_at)
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


def _recorded(cluster: str, refs: Collection[Ref]) -> tuple[dict[Ref, MirrorObject | None], dict[Ref, AppliedObject]]:
    """Return the mirror's rows of the objects, and what was applied of them; one query. Times are left out."""
    kinds, names = {r.kind for r in refs}, {r.name for r in refs}
    rows = MirrorObject.objects.filter(cluster=cluster, kind__in=kinds, name__in=names)
    records = change_targets.applied_objects(cluster, refs)
    columns, record_columns = ("pk", *mirror.COLUMNS), ("target", *applied_objects.COLUMNS)
    found, recorded = read_tables(Columns(rows, columns), Columns(records, record_columns))
    mirrored = (MirrorObject(cluster_id=cluster, **dict(zip(columns, values, strict=True))) for values in found)
    applied = (AppliedObject(**dict(zip(record_columns, values, strict=True))) for values in recorded)
    return (
        {ref: row for row in mirrored if (ref := Ref(row.kind, row.namespace, row.name)) in refs},
        {Ref(record.kind, record.namespace, record.name): record for record in applied},
    )


def _holders(cluster: str, changes: Iterable[Change]) -> dict[tuple[str, str], Allocation]:
    """Return the allocations that the batch refers to, by namespace and name: of each name the live one, else the one
    that ended last. One query.
    """
    pairs = {(c.new.ref.namespace, name) for c in changes if c.is_relevant for name in c.allocations}
    if not pairs:
        return {}
    namespaces, names = {namespace for namespace, _ in pairs}, {name for _, name in pairs}
    rows = spec_of_row.rows().filter(project__cluster=cluster, project__namespace__in=namespaces, name__in=names)
    return {pair: row for row in spec_of_row.of_names(rows) if (pair := (row.project.namespace, row.name)) in pairs}


def _write(cluster: str, change: Change) -> MirrorObject | None:
    new, row = change.new, change.old
    if new.gone:
        if row is not None:
            row.delete()
        return None
    row = row or MirrorObject(cluster_id=cluster, kind=new.ref.kind, namespace=new.ref.namespace, name=new.ref.name)
    # Change.old is read after this, so the new form is another instance.
    written = MirrorObject(
        pk=row.pk,
        cluster_id=row.cluster_id,
        kind=row.kind,
        namespace=row.namespace,
        name=row.name,
        uid=new.uid,
        resource_version=new.resource_version,
        digest=new.digest,
        allocation=new.allocation,
        deleting=new.deleting,
        facts=new.facts or {},
        seen_at=new.at,
    )
    written.save(force_insert=row.pk is None, force_update=row.pk is not None)
    return written


def _concerned(change: Change, holders: Mapping[tuple[str, str], Allocation]) -> list[Allocation]:
    """Return the allocations that the change refers to, by name."""
    namespace = change.new.ref.namespace
    return [row for name in sorted(change.allocations) if (row := holders.get((namespace, name)))]


def _snapshots(cluster: str, change: Change, rows: Sequence[Allocation]) -> Snapshots | None:
    """Return the objects of the allocations before and after the change; None if it cannot show what is held."""
    if not rows or change.new.ref.kind not in SHOW_HOLDS:
        return None
    after = mirror.of_allocations(cluster, change.new.ref.namespace, rows)
    old = mirror.observed_object(change.old) if change.old else None
    return Snapshots(after.with_object(change.new.ref, old), after)


def _sync_ledger(
    cluster: str, change: Change, rows: Sequence[Allocation], snapshots: Snapshots | None, *, is_known: bool
) -> set[Target]:
    """Update the ledger for the change; return the targets of the allocations that must be reconciled: those that it
    affects, unless a reconcile knows it already (``is_known``), and those whose intervals have changed.
    """
    changed: set[UUID] = set()
    if snapshots is not None:
        before, after = snapshots.before if change.new.live else None, snapshots.after
        differing = rows
        if before is not None and not change.is_relabelled:
            differing = [row for row in rows if not ledger.is_same_hold(row, before, after)]
        try:
            changed = ledger.sync(differing, after, before, at=change.new.at) if differing else set()
        except SlotHeld as error:
            log.warning("ledger.slot_held", error=str(error))
            changed = {row.pk for row in rows}
    affected = set() if is_known else change.affected_allocations
    return {targets.allocation(cluster, row.pk) for row in rows if row.pk in changed or row.name in affected}
