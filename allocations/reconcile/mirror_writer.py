"""Records observations of the watcher: writes the mirror, the ledger, and the work queue.

Each batch is one transaction: the mirror, the ledger and the work queue change together, or nothing does and the list
after a fault brings the batch again. Observations carry the object's revision, so an old or repeated one changes
nothing.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import INVENTORY, KINDS, Kind, Observation
from allocations.domain.objects import Ref, is_on_node
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, MirrorObject, WatchState
from allocations.reconcile import mirror
from allocations.reconcile.engine.plan import DELETED
from allocations.reconcile.metering import job_ledger, ledger
from portal.core import clock
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)
PART = 500
"""Objects of a list that are recorded at once."""
SHOW_HOLDS = frozenset({"ResourceClaim", "Pod", "ResourceQuota"})
"""Kinds by which a slice is seen held or gone (``allocations.cluster.backends``); a lease only reserves."""


def record_observations(cluster: str, observations: Sequence[Observation]) -> int:
    """Record a batch of a cluster in its order; return how many observations changed fields that the portal reads."""
    if not observations:
        return 0
    with transaction.atomic():
        known = _rows(cluster, (o.ref for o in observations))
        observations = list(_carried(observations, known))
        changes = [Change(o, known.get(o.ref)) for o in observations]
        holders = _holders(cluster, changes)
        due: set[Target] = set()
        news: list[Change] = []
        for observation in observations:
            change = Change(observation, known.get(observation.ref))
            if change.is_stale or not (change.is_news or observation.managed):
                continue
            known[observation.ref] = _write(cluster, change)
            if change.is_news:
                news.append(change)
                job_ledger.record(cluster, observation, change.old)
                due |= _allocations_touched(cluster, change, holders)
                due |= _inventory(cluster, change) | _adoption(cluster, change, holders)
        due |= _keepers(cluster, news)
        workqueue.enqueue(*due)
    return len(news)


def record_sync(cluster: str, *places: tuple[Kind, int, datetime]) -> None:
    """Record that the cluster's mirror of each kind is complete up to this revision, at this time."""
    WatchState.objects.bulk_create(
        [
            WatchState(cluster_id=cluster, kind=kind.name, resource_version=revision, synced_at=at)
            for kind, revision, at in places
        ],
        update_conflicts=True,
        unique_fields=["cluster", "kind"],
        update_fields=["resource_version", "synced_at"],
    )


def record_list(
    cluster: str, kind: Kind, observations: Sequence[Observation], resource_version: int, listed_at: datetime
) -> None:
    """A full list: what the mirror had beside it is gone, and what it has is recorded, both since the last sighting.

    Raises StoreRestored, with nothing recorded, when the list or an object in it is older than what was seen before.

    All in one transaction, part by part: the rows that a list meets need not be in memory all at once.
    """
    with transaction.atomic():
        state = WatchState.objects.filter(cluster=cluster, kind=kind.name).first()
        last_sighting = state.synced_at if state else listed_at
        there = {o.ref: o.resource_version for o in observations}
        _require_later(kind.name, resource_version, state.resource_version if state else 0)
        missing = []
        known = MirrorObject.objects.filter(cluster=cluster, kind=kind.name)
        for row in known.only("namespace", "name", "uid", "allocation", "resource_version").iterator():
            ref = Ref(kind.name, row.namespace, row.name)
            if ref in there:
                _require_later(f"{kind.name} {row.namespace}/{row.name}", there[ref], row.resource_version)
                continue
            gone = Observation(
                ref=ref,
                uid=row.uid,
                resource_version=resource_version,
                at=last_sighting,
                live=False,
                gone=True,
                allocation=row.allocation,
            )
            missing.append(gone)
        record_observations(cluster, missing)
        for start in range(0, len(observations), PART):
            part = [replace(o, at=last_sighting) for o in observations[start : start + PART]]
            record_observations(cluster, part)
        record_sync(cluster, (kind, resource_version, listed_at))
        workqueue.enqueue(*_keepers_of_unseen(cluster, kind, there, resource_version))


def _require_later(what: str, listed: int, seen: int) -> None:
    """Raises StoreRestored when a kind or an object is listed at an earlier revision than it was seen at.

    Revisions may also go on above all former ones (``etcdutl snapshot restore --bump-revision``); the objects that are
    as the backup had them still have their own.
    """
    if listed < seen:
        raise StoreRestored(f"{what} was seen at revision {seen} and is listed at {listed}")


def start_anew(cluster: str) -> None:
    """Reset the revisions of what was observed of a cluster or returned by it, so that a list counts as newer.

    Until its kind is listed, the portal knows of no object whether it exists, is as it was applied, or is gone. An
    object that was being deleted may exist as if it had never been deleted. Times of observation stay.
    """
    MirrorObject.objects.filter(cluster=cluster).update(resource_version=0)
    WatchState.objects.filter(cluster=cluster).update(resource_version=0)
    applied = AppliedObject.objects.filter(cluster=cluster)
    applied.update(resource_version=1)
    applied.filter(intent=DELETED).update(intent="")


@dataclass(frozen=True)
class Change:
    """An observation beside the row it meets."""

    new: Observation
    old: MirrorObject | None

    @property
    def is_stale(self) -> bool:
        return self.old is not None and self.new.resource_version < self.old.resource_version

    @property
    def is_news(self) -> bool:
        """Whether what anyone reads of the object changed (revisions move for much that nobody reads)."""
        old, new = self.old, self.new
        if old is None:
            return not new.gone
        return new.gone or (old.uid, old.digest, old.deleting, old.allocation, old.facts) != (
            new.uid,
            new.digest,
            new.deleting,
            new.allocation,
            new.facts,
        )

    @property
    def allocations(self) -> set[str]:
        """Names of the allocations that the object speaks of: by its label, or by the list in a hold quota."""
        names = {self.new.allocation, self.old.allocation if self.old else ""}
        return (names | set(self._slices_before) | set(self._slices_after)) - {""}

    @property
    def certainly_touched(self) -> set[str]:
        """Those of them whose entry in the hold quota went, changed, or is shown by the quota's status from now on."""
        before, after = self._slices_before, self._slices_after
        entries = {name for name in before if before[name] != after.get(name)}
        if self._shown(self.new.facts) and (before != after or not self._shown(self.old.facts if self.old else None)):
            entries |= set(after)
        return entries | ({self.new.allocation, self.old.allocation if self.old else ""} - {""})

    @staticmethod
    def _shown(facts: Mapping[str, object] | None) -> bool:
        return bool((facts or {}).get("shown"))

    @property
    def _slices_before(self) -> Mapping[str, object]:
        return self.old.facts.get("slices", {}) if self.old else {}

    @property
    def _slices_after(self) -> Mapping[str, object]:
        return {} if self.new.gone else (self.new.facts or {}).get("slices", {})


def _rows(cluster: str, refs: Iterable[Ref]) -> dict[Ref, MirrorObject | None]:
    wanted = set(refs)
    kinds, names = {r.kind for r in wanted}, {r.name for r in wanted}
    rows = MirrorObject.objects.filter(cluster=cluster, kind__in=kinds, name__in=names)
    return {ref: row for row in rows if (ref := Ref(row.kind, row.namespace, row.name)) in wanted}


def _carried(observations: Iterable[Observation], known: Mapping[Ref, MirrorObject | None]) -> Iterator[Observation]:
    """Each with what its kind carries on from the facts before it, in the mirror or in the batch itself."""
    last = {ref: (row.uid, row.resource_version, row.facts) for ref, row in known.items() if row is not None}
    for observation in observations:
        uid, revision, facts = last.get(observation.ref, ("", 0, {}))
        if observation.facts is not None and not observation.gone and observation.resource_version >= revision:
            before = facts if observation.uid == uid else {}
            observation = replace(observation, facts=KINDS[observation.ref.kind].merge(before, observation.facts))
            last[observation.ref] = (observation.uid, observation.resource_version, observation.facts or {})
        yield observation


def _holders(cluster: str, changes: Iterable[Change]) -> dict[tuple[str, str], Allocation]:
    """Allocations by namespace and name, for all that the batch speaks of, in one query."""
    pairs = {(c.new.ref.namespace, name) for c in changes if c.is_news for name in c.allocations}
    if not pairs:
        return {}
    namespaces, names = {namespace for namespace, _ in pairs}, {name for _, name in pairs}
    rows = spec_of_row.rows().filter(project__cluster=cluster, project__namespace__in=namespaces, name__in=names)
    return {pair: row for row in rows if (pair := (row.project.namespace, row.name)) in pairs}


def _write(cluster: str, change: Change) -> MirrorObject | None:
    new, row = change.new, change.old
    if new.gone:
        if row is not None:
            row.delete()
        return None
    row = row or MirrorObject(cluster_id=cluster, kind=new.ref.kind, namespace=new.ref.namespace, name=new.ref.name)
    # Change.old must keep its form for the questions asked after this, so the new one is another instance.
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
        seen_at=clock.now(),
    )
    written.save(force_insert=row.pk is None, force_update=row.pk is not None)
    return written


def _allocations_touched(cluster: str, change: Change, holders: Mapping[tuple[str, str], Allocation]) -> set[Target]:
    """Bring the ledger along, and name the allocations that have to be looked at."""
    namespace = change.new.ref.namespace
    rows = [row for name in sorted(change.allocations) if (row := holders.get((namespace, name)))]
    if not rows:
        return set()
    moved: set[UUID] = set()
    if change.new.ref.kind in SHOW_HOLDS:
        snapshot = mirror.of_allocations(cluster, namespace, rows)
        old = mirror.seen(change.old) if change.old else None
        before = snapshot.with_object(change.new.ref, old) if change.new.live else None
        try:
            moved = ledger.sync(rows, snapshot, before, at=change.new.at)
        except SlotHeld as error:
            log.warning("ledger.slot_held", error=str(error))
            moved = {row.pk for row in rows}
    touched = change.certainly_touched
    return {targets.allocation(cluster, row.pk) for row in rows if row.pk in moved or row.name in touched}


def _keepers(cluster: str, changes: Iterable[Change]) -> set[Target]:
    """Whoever keeps an object that was deleted or edited by someone else."""
    last = {c.new.ref: c.new for c in changes}
    kinds, names = {r.kind for r in last}, {r.name for r in last}
    rows = AppliedObject.objects.filter(cluster=cluster, kind__in=kinds, name__in=names)
    return {
        Target(row.target)
        for row in rows
        if (new := last.get(Ref(row.kind, row.namespace, row.name)))
        and new.resource_version >= row.resource_version
        and (new.gone or new.deleting or (new.uid, new.digest) != (row.uid, row.digest))
    }


def _keepers_of_unseen(cluster: str, kind: Kind, there: Container[Ref], resource_version: int) -> set[Target]:
    """Whoever keeps an object that was applied and gone again before any watch or list saw it."""
    applied = AppliedObject.objects.filter(cluster=cluster, kind=kind.name, resource_version__lte=resource_version)
    rows = applied.values_list("target", "kind", "namespace", "name").iterator()
    return {Target(target) for target, *ref in rows if Ref(*ref) not in there}


def _inventory(cluster: str, change: Change) -> set[Target]:
    """What there is changed, or what nobody allocated uses of it."""
    new = change.new
    facts = new.facts or (change.old.facts if change.old else {})  # a list does not say how what it lacks looked
    uses = not new.allocation and (new.ref.kind == "ResourceClaim" or facts.get("gpus") or _takes_otherwise(change))
    return {targets.inventory(cluster)} if new.ref.kind in INVENTORY or uses else set()


def _takes_otherwise(change: Change) -> bool:
    """Whether a pod takes more or less of a node than before."""
    old, new = change.old.facts if change.old else {}, {} if change.new.gone else change.new.facts or {}
    return change.new.ref.kind == "Pod" and _taken(old) != _taken(new)


def _taken(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(pod.get(name) for name in ("node", "cpu_millicores", "memory_mib")) if is_on_node(pod) else ()


def _adoption(cluster: str, change: Change, holders: Mapping[tuple[str, str], Allocation]) -> set[Target]:
    """A lease of ours without a row: the database was restored to before its request."""
    new = change.new
    is_lease = new.ref.kind == "Workload" and bool(new.allocation) and not new.gone
    is_known = (new.ref.namespace, new.allocation) in holders
    return {targets.adoption(cluster)} if is_lease and not is_known else set()
