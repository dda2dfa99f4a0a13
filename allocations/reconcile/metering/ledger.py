"""Records holds in the ledger: opens intervals when the cluster shows a slice held, and ends them when it shows it
gone.

Called by the watcher in the transaction that writes the mirror, so that no change is missed, and by the reconciler as a
repair. Keys are computed from the observation (allocation, slot, and the hold's identity), so the same hold seen twice,
by two processes or after a restart, is one interval.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from allocations.cluster.backends import registry
from allocations.domain.objects import Ref, Slice, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile.metering import gpu_fraction
from allocations.reconcile.metering.attribution import attribution
from portal.core import clock
from quotas.catalog.models import Device
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval

Open = dict[UUID, dict[str, UsageInterval]]
"""Open intervals by allocation and slot."""


def key(allocation: UUID, slot: str, identity: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"gpu-portal/usage/{allocation}/{slot}/{identity}")


def _next_key(allocation: UUID, slot: str, identity: str) -> UUID:
    """The key of the hold, or of its next one when intervals of it have ended: computed from the last one's end."""
    found = key(allocation, slot, identity)
    while ended := UsageInterval.objects.filter(key=found, end__isnull=False).first():
        found = key(allocation, slot, f"{identity}/{ended.end:%FT%T.%f}")
    return found


def sync(rows: Sequence[Allocation], snapshot: Snapshot, before: Snapshot | None, *, at: datetime) -> set[UUID]:
    """Make the open intervals of ``rows`` equal to what ``snapshot`` shows; returns whose changed.

    ``rows`` as from ``spec_of_row.rows()``. ``before``: what the watched change met, so that ``at`` is when it
    happened; None when nobody watched: then an end is the last sighting ``at``, flagged estimated. Ends come first:
    a device that passes from one allocation to another is never held by both. Raises SlotHeld when another's interval
    on the slot has not ended yet.
    """
    open_now = _open(rows)
    ended = _end_gone(rows, snapshot, open_now, at=at, live=before is not None)
    return ended | _open_held(rows, snapshot, before, open_now, at=at, again=True)


def open_held(rows: Sequence[Allocation], snapshot: Snapshot, *, at: datetime) -> set[UUID]:
    """Enter holds that have no interval, and end none: a reader's view may be older than the ledger."""
    return _open_held(rows, snapshot, None, _open(rows), at=at)


def not_entered(rows: Iterable[Allocation], snapshots: Mapping[str, Snapshot]) -> set[UUID]:
    """Return the allocations of one cluster with slices that are to be charged, by the snapshot of their namespace, and
    have no open interval; one query."""
    rows = list(rows)
    open_now, found = _open(rows), set()
    for row in rows:
        due = hold.charged(spec_of_row.resolved_spec(row), snapshots[row.project.namespace])
        if {_slot(row, s.slot) for s in due if s.is_charged} - open_now[row.pk].keys():
            found.add(row.pk)
    return found


def end_left(row: Allocation, *, at: datetime) -> None:
    """End what is open of an allocation that the cluster is known to have nothing of."""
    for interval in _open([row])[row.pk].values():
        metering.close_interval(interval.key, at, {"kind": "none"}, estimated=True)


def _end_gone(rows: Sequence[Allocation], snapshot: Snapshot, open_now: Open, *, at: datetime, live: bool) -> set[UUID]:
    """End the intervals whose slot is no longer occupied, and take them out of ``open_now``."""
    moved: set[UUID] = set()
    for row in rows:
        asked, already = spec_of_row.resolved_spec(row), open_now[row.pk]
        backend = registry.backend_of(asked)
        occupied = {_slot(row, s.slot) for s in backend.occupied(asked, snapshot)} if already else set()
        for slot in already.keys() - occupied:
            gone = already.pop(slot)
            metering.close_interval(gone.key, at, _evidence(snapshot, gone), estimated=not live)
            moved.add(row.pk)
    return moved


def _open_held(
    rows: Sequence[Allocation],
    snapshot: Snapshot,
    before: Snapshot | None,
    open_now: Open,
    *,
    at: datetime,
    again: bool = False,
) -> set[UUID]:
    """Open an interval for each held slot that has none. One whose beginning nobody watched, or that was held before
    the change already, begins when the cluster itself says, flagged estimated. A hold that already ended stays ended:
    its key is known. ``again``: ``snapshot`` is the newest there is, so one that it shows after its end is another hold
    (someone took our label off the claim, say, and it was put back). Of that the cluster tells only the first
    beginning, so where nobody watched (etcd came back from a backup) it begins now, with the holder that the ledger
    knows or another."""
    begins: list[tuple[Allocation, Slice, bool]] = []
    for row in rows:
        asked, already = spec_of_row.resolved_spec(row), open_now[row.pk]
        backend = registry.backend_of(asked)
        if {_slot(row, s.slot) for s in backend.occupied(asked, snapshot) if s.is_charged} - already.keys():
            missed = {s.slot for s in hold.charged(asked, before)} if before is not None else set()
            for s in hold.charged(asked, snapshot):
                if s.is_charged and _slot(row, s.slot) not in already:
                    begins.append((row, s, before is not None and s.slot not in missed))
    devices = _devices((row.project.cluster_id, s) for row, s, _ in begins)
    parts = gpu_fraction.gpu_fractions([(row, held) for row, held, _ in begins])
    for (row, held, watched), part in zip(begins, parts, strict=True):
        slot = _slot(row, held.slot)
        first = key(row.pk, slot, held.identity)
        this = _next_key(row.pk, slot, held.identity) if again else first
        found_at = at if before is not None else clock.now()
        is_back = before is None and (this != first or _has_ended_since(row.pk, slot, held.since))
        since = held.since if held.since and not is_back else found_at
        where = {"node": held.node, "device_uuid": devices.get((row.project.cluster_id, held.node, held.device), "")}
        metering.open_interval(
            this,
            row.pk,
            slot,
            at if watched else since,
            attribution(row.project, row.offering, part, member=row.requested_by.username, **where),
            held.count,
            _evidence_of(snapshot, held.evidence),
            estimated=not watched,
        )
    return {row.pk for row, _, _ in begins}


def _has_ended_since(allocation: UUID, slot: str, since: datetime | None) -> bool:
    """Whether the ledger has an end of the allocation's hold after it began, so that this is another hold."""
    if since is None:
        return False
    return UsageInterval.objects.filter(holder_id=allocation, slot=slot, end__gt=since).exists()


def _open(rows: Sequence[Allocation]) -> Open:
    found: Open = {row.pk: {} for row in rows}
    for interval in UsageInterval.objects.filter(holder_id__in=list(found), end=None):
        found[interval.holder_id][interval.slot] = interval
    return found


def _slot(row: Allocation, slot: str) -> str:
    return f"{row.project.cluster_id}/{slot}"


def _devices(slices: Iterable[tuple[str, Slice]]) -> Mapping[tuple[str, str, str], str]:
    """Return UUIDs by cluster, node and device."""
    wanted = {(cluster, s.node, s.device) for cluster, s in slices if s.device}
    if not wanted:
        return {}
    rows = Device.objects.filter(node__name__in={node for _, node, _ in wanted})
    found = rows.values_list("node__cluster", "node__name", "name", "uuid")
    return {(cluster, node, name): uuid for cluster, node, name, uuid in found if (cluster, node, name) in wanted}


def _evidence_of(snapshot: Snapshot, ref: Ref | None) -> dict[str, str]:
    if ref is None:
        return {}
    seen = snapshot.get(ref)
    return {
        "kind": ref.kind,
        "name": ref.name,
        "resource_version": str(seen.resource_version) if seen else "gone",
    }


def _evidence(snapshot: Snapshot, interval: UsageInterval) -> dict[str, str]:
    """The object that showed the hold, as it looks now that it shows it no more."""
    start = interval.source_start
    return _evidence_of(snapshot, Ref(start.get("kind", ""), interval.namespace, start.get("name", "")))
