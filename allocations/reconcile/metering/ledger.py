"""From what is held to the ledger: intervals open when the cluster shows a slice held, and end when it shows it gone.

Called by the watcher in the transaction that writes the mirror, so that no change between two looks is missed, and
by the reconciler as a repair. Keys are computed from the fact (allocation, slot, and what makes this hold the one it
is), so the same hold seen twice, by two processes or after a restart, is one interval.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from django.conf import settings

from allocations.cluster.backends import registry
from allocations.domain.objects import Ref, Slice, View
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


def sync(rows: Sequence[Allocation], view: View, before: View | None, *, at: datetime) -> set[UUID]:
    """Make the open intervals of ``rows`` equal to what ``view`` shows; returns whose changed.

    ``rows`` as from ``spec_of_row.rows()``. ``before``: what the watched change met, so that ``at`` is when it
    happened; None when nobody watched: then an end is the last sighting ``at``, flagged estimated. Ends come first:
    a device that passes from one allocation to another is never held by both. Raises SlotHeld when another's interval
    on the slot has not ended yet.
    """
    open_now = _open(rows)
    ended = _end_gone(rows, view, open_now, at=at, live=before is not None)
    return ended | _open_held(rows, view, before, open_now, at=at, again=True)


def open_held(rows: Sequence[Allocation], view: View, *, at: datetime) -> set[UUID]:
    """Enter holds that have no interval, and end none: a reader's view may be older than the ledger."""
    return _open_held(rows, view, None, _open(rows), at=at)


def not_entered(rows: Iterable[Allocation], views: Mapping[str, View]) -> set[UUID]:
    """Whose slices are to be charged, by the view of their namespace, and have no open interval; one query."""
    rows = list(rows)
    open_now, found = _open(rows), set()
    for row in rows:
        due = hold.charged(spec_of_row.of(row), views[row.project.namespace])
        if {_slot(s.slot) for s in due if s.is_charged} - open_now[row.pk].keys():
            found.add(row.pk)
    return found


def end_left(row: Allocation, *, at: datetime) -> None:
    """End what is open of an allocation that the cluster is known to have nothing of."""
    for interval in _open([row])[row.pk].values():
        metering.close_interval(interval.key, at, {"kind": "none"}, estimated=True)


def _end_gone(rows: Sequence[Allocation], view: View, open_now: Open, *, at: datetime, live: bool) -> set[UUID]:
    """End the intervals whose slot is no longer occupied, and take them out of ``open_now``."""
    moved: set[UUID] = set()
    for row in rows:
        asked, already = spec_of_row.of(row), open_now[row.pk]
        occupied = {_slot(s.slot) for s in registry.backend_of(asked).occupied(asked, view)} if already else set()
        for slot in already.keys() - occupied:
            gone = already.pop(slot)
            metering.close_interval(gone.key, at, _evidence(view, gone), estimated=not live)
            moved.add(row.pk)
    return moved


def _open_held(
    rows: Sequence[Allocation], view: View, before: View | None, open_now: Open, *, at: datetime, again: bool = False
) -> set[UUID]:
    """Open an interval for each held slot that has none. One whose beginning nobody watched, or that was held before
    the change already, begins when the cluster itself says, flagged estimated. A hold that already ended stays ended:
    its key is known. ``again``: ``view`` is the newest there is, so one that it shows after its end is another hold
    (someone took our label off the claim, say, and it was put back). Of that the cluster tells only the first
    beginning, so where nobody watched (etcd came back from a backup) it begins now, with the holder that the ledger
    knows or another."""
    begins: list[tuple[Allocation, Slice, bool]] = []
    for row in rows:
        asked, already = spec_of_row.of(row), open_now[row.pk]
        backend = registry.backend_of(asked)
        if {_slot(s.slot) for s in backend.occupied(asked, view) if s.is_charged} - already.keys():
            missed = {s.slot for s in hold.charged(asked, before)} if before is not None else set()
            for s in hold.charged(asked, view):
                if s.is_charged and _slot(s.slot) not in already:
                    begins.append((row, s, before is not None and s.slot not in missed))
    devices = _devices(s for _, s, _ in begins)
    parts = gpu_fraction.of([(row, held) for row, held, _ in begins])
    for (row, held, watched), part in zip(begins, parts, strict=True):
        slot = _slot(held.slot)
        first = key(row.pk, slot, held.identity)
        this = _next_key(row.pk, slot, held.identity) if again else first
        found_at = at if before is not None else clock.now()
        is_back = before is None and (this != first or _has_ended_since(row.pk, slot, held.since))
        since = held.since if held.since and not is_back else found_at
        where = {"node": held.node, "device_uuid": devices.get((held.node, held.device), "")}
        metering.open_interval(
            this,
            row.pk,
            slot,
            at if watched else since,
            attribution(row.project, row.offering, part, member=row.requested_by.username, **where),
            held.count,
            _evidence_of(view, held.evidence),
            estimated=not watched,
        )
    return {row.pk for row, _, _ in begins}


def _has_ended_since(allocation: UUID, slot: str, since: datetime | None) -> bool:
    """Whether the ledger has an end of the allocation's hold after it began, so that this is another hold."""
    if since is None:
        return False
    return UsageInterval.objects.filter(allocation=allocation, slot=slot, end__gt=since).exists()


def _open(rows: Sequence[Allocation]) -> Open:
    found: Open = {row.pk: {} for row in rows}
    for interval in UsageInterval.objects.filter(allocation__in=list(found), end=None):
        found[interval.allocation][interval.slot] = interval
    return found


def _slot(slot: str) -> str:
    return f"{settings.CLUSTER_NAME}/{slot}"


def _devices(slices: Iterable[Slice]) -> Mapping[tuple[str, str], str]:
    wanted = {(s.node, s.device) for s in slices if s.device}
    if not wanted:
        return {}
    rows = Device.objects.filter(node__name__in={node for node, _ in wanted}).values_list("node__name", "name", "uuid")
    return {(node, name): uuid for node, name, uuid in rows if (node, name) in wanted}


def _evidence_of(view: View, ref: Ref | None) -> dict[str, str]:
    if ref is None:
        return {}
    seen = view.get(ref)
    return {
        "kind": ref.kind,
        "name": ref.name,
        "resource_version": str(seen.resource_version) if seen else "gone",
    }


def _evidence(view: View, interval: UsageInterval) -> dict[str, str]:
    """The object that showed the hold, as it looks now that it shows it no more."""
    start = interval.source_start
    return _evidence_of(view, Ref(start.get("kind", ""), interval.namespace, start.get("name", "")))
