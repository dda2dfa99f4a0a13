"""Records holds in the ledger: opens an interval when a slice is observed held, and closes it when it is observed gone.

Called by the watcher in the transaction that writes the mirror, so that no change is missed, and by the controller as a
repair. The key of an interval is computed from the observation (allocation, slot, and the hold's identity), so a hold
observed twice, by two processes or after a restart, is one interval.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from allocations.cluster.backends import registry
from allocations.domain.objects import Ref, Slice, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes.registry import mode_of
from allocations.models import Allocation
from allocations.reconcile.metering import gpu_fraction
from allocations.reconcile.metering.attribution import attribution
from portal.core import clock
from portal.core.any_of import AnyOf
from portal.core.query_templates import QueryTemplate
from portal.core.reading import NO_ROWS, Columns, Rows, read_tables
from quotas.catalog.models import Device
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import Begin

Open = dict[UUID, dict[str, UsageInterval]]
"""Open intervals by allocation and slot."""
Begun = tuple[Allocation, Slice, bool]
"""A slice of an allocation, and whether the change shows that it is held since then."""
Place = tuple[str, str, str]
"""Cluster, node and device."""


def key(allocation: UUID, slot: str, identity: str) -> UUID:
    """Return the key of a hold's first interval."""
    return uuid5(NAMESPACE_URL, f"gpu-portal/usage/{allocation}/{slot}/{identity}")


def _next_key(allocation: UUID, slot: str, identity: str, ended: Mapping[UUID, datetime]) -> UUID:
    """Return the key of the hold's next interval, computed from the end of the previous one, if any.

    ``ended`` are the ends of closed intervals by the keys of first ones.
    """
    found = key(allocation, slot, identity)
    end = ended.get(found)
    while end:
        found = key(allocation, slot, f"{identity}/{end:%FT%T.%f}")
        end = UsageInterval.objects.filter(key=found, end__isnull=False).values_list("end", flat=True).first()
    return found


def sync(
    rows: Sequence[Allocation], snapshot: Snapshot, before: Snapshot | None, *, at: datetime, live: bool
) -> set[UUID]:
    """Open and close intervals of ``rows`` so that the ledger agrees with ``snapshot``; return the changed allocations.

    ``rows`` need the relations of ``spec_of_row.rows()``. A ``live`` change was watched, and happened ``at``. Any other
    was found later, and ``at`` is the last sighting of ``before``, the state before it: intervals close then, flagged
    estimated. ``before`` is None if nobody had seen the cluster before. Intervals are closed first, so that a device is
    never charged to two allocations at once.

    Raises SlotHeld if another holder's interval on a slot is still open.
    """
    intervals = _open(rows)
    closed = _close_gone(rows, snapshot, intervals, at=at, live=live)
    return closed | _open_held(rows, snapshot, before, intervals, at=at, live=live, may_reopen=True)


def is_same_hold(row: Allocation, before: Snapshot, after: Snapshot) -> bool:
    """Return whether the allocation occupies and is charged for the same slices, so that no interval changes."""
    spec = spec_of_row.resolved_spec(row)
    backend, mode = registry.backend_of(spec), mode_of(spec)
    return (backend.occupied(spec, before), mode.charged(spec, before)) == (
        backend.occupied(spec, after),
        mode.charged(spec, after),
    )


def open_held(
    rows: Sequence[Allocation], snapshot: Snapshot, *, at: datetime, intervals: Open | None = None
) -> set[UUID]:
    """Open the missing intervals, and close none, since ``snapshot`` may be older than the ledger; return the changed
    allocations. Without ``intervals``, the open ones are read.
    """
    return _open_held(rows, snapshot, None, _open(rows) if intervals is None else intervals, at=at, live=False)


def with_missing_intervals(rows: Iterable[Allocation], snapshots: Mapping[str, Snapshot]) -> set[UUID]:
    """Return the allocations of one cluster with a charged slice that has no open interval; one query.

    ``snapshots`` are by namespace.
    """
    return {row.pk for row, _ in missing_intervals(rows, snapshots)}


def missing_intervals(
    rows: Iterable[Allocation], snapshots: Mapping[str, Snapshot]
) -> Iterator[tuple[Allocation, Slice]]:
    """Yield each charged slice of allocations of one cluster that has no open interval; one query."""
    rows = list(rows)
    intervals = _open(rows)
    for row in rows:
        for held in slices_outside(row, snapshots[row.project.namespace], intervals[row.pk]):
            yield row, held


def slices_outside(row: Allocation, snapshot: Snapshot, open_slots: Container[str]) -> list[Slice]:
    """Return the charged slices of the allocation that are in none of these slots."""
    spec = spec_of_row.resolved_spec(row)
    return [
        held
        for held in mode_of(spec).charged(spec, snapshot)
        if held.is_charged and _slot(row, held.slot) not in open_slots
    ]


def gone_intervals(
    rows: Iterable[Allocation], snapshots: Mapping[str, Snapshot]
) -> Iterator[tuple[Allocation, UsageInterval]]:
    """Yield each open interval of allocations of one cluster whose slot they do not occupy; one query."""
    rows = list(rows)
    intervals = _open(rows)
    for row in rows:
        spec = spec_of_row.resolved_spec(row)
        occupied = registry.backend_of(spec).occupied(spec, snapshots[row.project.namespace])
        for slot in sorted(intervals[row.pk].keys() - {_slot(row, held.slot) for held in occupied}):
            yield row, intervals[row.pk][slot]


def close_all(row: Allocation, *, at: datetime) -> None:
    """Close all open intervals of an allocation that the cluster has nothing of any more, flagged estimated."""
    for interval in _open([row])[row.pk].values():
        metering.close_interval(interval.key, at, {"kind": "none"}, estimated=True)


def hand_over(row: Allocation) -> None:
    """Close the open intervals of ended allocations with the name of this one at their start.

    They were opened for its slices while its row was lost; its own begin when the cluster says that they did.
    """
    ended = Allocation.objects.filter(project=row.project_id, name=row.name).exclude(ended_at=None)
    for interval in UsageInterval.objects.filter(holder_id__in=ended.values("pk"), end=None):
        metering.close_interval(interval.key, interval.start, {"kind": "none"}, estimated=True)


def _close_gone(
    rows: Sequence[Allocation], snapshot: Snapshot, intervals: Open, *, at: datetime, live: bool
) -> set[UUID]:
    """Close the intervals whose slot is no longer occupied, and remove them from ``intervals``; return the changed
    allocations.
    """
    gone: list[UsageInterval] = []
    for row in rows:
        spec, open_slots = spec_of_row.resolved_spec(row), intervals[row.pk]
        backend = registry.backend_of(spec)
        occupied = {_slot(row, s.slot) for s in backend.occupied(spec, snapshot)} if open_slots else set()
        gone += [open_slots.pop(slot) for slot in open_slots.keys() - occupied]
    metering.close_intervals({one.key: _evidence(snapshot, one) for one in gone}, at, estimated=not live)
    return {one.holder_id for one in gone}


def _open_held(
    rows: Sequence[Allocation],
    snapshot: Snapshot,
    before: Snapshot | None,
    intervals: Open,
    *,
    at: datetime,
    live: bool,
    may_reopen: bool = False,
) -> set[UUID]:
    """Open an interval for each held slot that has none; return the changed allocations.

    A hold whose start was not watched, or that was held before the change already, starts at the time that the cluster
    has for it, flagged estimated. That may be when its lease was admitted, long before the hold: after a sighting at
    which it was not held, it starts no earlier than that, nor than the cluster says that it was held. A closed interval
    stays closed, since its key exists.

    ``may_reopen``: ``snapshot`` is the newest one, so a hold that it shows after its interval was closed is another
    hold (for example, the portal's label was removed from the claim and put back). The cluster only has the start of
    the first one, so if the new start was not watched (etcd was restored from a backup), the interval starts now.
    """
    begins: list[Begun] = []
    for row in rows:
        spec, open_slots = spec_of_row.resolved_spec(row), intervals[row.pk]
        backend = registry.backend_of(spec)
        if {_slot(row, s.slot) for s in backend.occupied(spec, snapshot) if s.is_charged} - open_slots.keys():
            earlier = {s.slot for s in mode_of(spec).charged(spec, before)} if before is not None else set()
            for s in mode_of(spec).charged(spec, snapshot):
                if s.is_charged and _slot(row, s.slot) not in open_slots:
                    begins.append((row, s, before is not None and s.slot not in earlier))
    if not begins:
        return set()
    devices, ended = _known(begins)
    fractions = gpu_fraction.gpu_fractions([(row, held) for row, held, _ in begins])
    opened: list[Begin] = []
    for (row, held, is_new), fraction in zip(begins, fractions, strict=True):
        slot = _slot(row, held.slot)
        first = key(row.pk, slot, held.identity)
        interval_key = _next_key(row.pk, slot, held.identity, ended) if may_reopen else first
        is_reopened = not live and (interval_key != first or _has_ended_since(row.pk, slot, held.since))
        since = held.since if held.since and not is_reopened else at if live else clock.now()
        if is_new:
            since = at if live else max(since, held.confirmed_at or at, at)
        device = {"node": held.node, "device_uuid": devices.get((row.project.cluster_id, held.node, held.device), "")}
        who = attribution(
            row.project, row.offering, fraction, member=row.requested_by.username, labels=row.labels, **device
        )
        opened.append(
            Begin(
                interval_key,
                row.pk,
                slot,
                since,
                who,
                held.count,
                _evidence_of(snapshot, held.evidence),
                estimated=not (live and is_new),
            )
        )
    metering.open_intervals(opened)
    return {row.pk for row, _, _ in begins}


def _has_ended_since(allocation: UUID, slot: str, since: datetime | None) -> bool:
    """Return whether an interval of the allocation on the slot was closed after ``since``."""
    if since is None:
        return False
    return UsageInterval.objects.filter(holder_id=allocation, slot=slot, end__gt=since).exists()


def _open(rows: Sequence[Allocation]) -> Open:
    found: Open = {row.pk: {} for row in rows}
    intervals: list[UsageInterval]
    [intervals] = read_tables(*_OPEN.of(holders=list(found))) if found else [[]]
    for interval in intervals:
        found[interval.holder_id][interval.slot] = interval
    return found


_OPEN = QueryTemplate(
    lambda holders: [Rows(UsageInterval.objects.filter(AnyOf("holder_id", holders), end=None).order_by())],
    holders=list[UUID],
)


def _slot(row: Allocation, slot: str) -> str:
    return f"{row.project.cluster_id}/{slot}"


def _known(begins: Sequence[Begun]) -> tuple[Mapping[Place, str], Mapping[UUID, datetime]]:
    """Return the UUIDs of the devices that begin to be held, and the ends of closed intervals by the keys of the first
    ones; one query.
    """
    first = [key(row.pk, _slot(row, held.slot), held.identity) for row, held, _ in begins]
    nodes, names = ({getattr(held, part) for _, held, _ in begins if held.device} for part in ("node", "device"))
    ended, devices = read_tables(
        Columns(UsageInterval.objects.filter(AnyOf("key", first), end__isnull=False).order_by(), ("key", "end")),
        Columns(
            Device.objects.filter(AnyOf("node__name", list(nodes)), AnyOf("name", list(names))).order_by(),
            ("node__cluster", "node__name", "name", "uuid"),
        )
        if names
        else NO_ROWS,
    )
    ends = {UUID(one.key): datetime.fromisoformat(one.end) for one in ended}
    return {(one.node__cluster, one.node__name, one.name): one.uuid for one in devices}, ends


def _evidence_of(snapshot: Snapshot, ref: Ref | None) -> dict[str, str]:
    if ref is None:
        return {}
    observed = snapshot.get(ref)
    return {
        "kind": ref.kind,
        "name": ref.name,
        "resource_version": str(observed.resource_version) if observed else "gone",
    }


def _evidence(snapshot: Snapshot, interval: UsageInterval) -> dict[str, str]:
    """Return the latest form of the object that showed the hold."""
    start = interval.source_start
    return _evidence_of(snapshot, Ref(start.get("kind", ""), interval.namespace, start.get("name", "")))
