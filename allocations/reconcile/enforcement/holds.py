"""Lists holds and what each may use by its lease, as ``allocations.lifecycle.lease_excess`` reads them."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from allocations.cluster import names
from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.domain.objects import Snapshot
from allocations.lifecycle import lease_excess, spec_of_row
from allocations.lifecycle.lease_excess import DEVICES, Hold
from allocations.lifecycle.modes import hold as hold_mode
from allocations.models import Allocation
from allocations.reconcile import mirror


def holds(cluster: str, snapshot: Snapshot, now: datetime, **only: str) -> list[Hold]:
    """Return the live allocations of a cluster, and leases without a row. ``only`` filters allocations.

    Two queries, and a few for each whose lease is gone while its slices are held.
    """
    reserving = lease_excess.reserving(snapshot)
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None, **only).order_by()
    rows = live.annotate(own_claim=Q(claim__isnull=False)).values_list(
        *("pk", "name", "number", "count", "held_at", "own_claim", "constraints__spread"),
        *("project__namespace", "offering__resource", "offering__flavor__path"),
    )
    found = [
        Hold(
            id=str(pk),
            name=name,
            namespace=namespace,
            number=number,
            amounts={DEVICES if path in NAMING_PATHS else resource: None if own_claim else count},
            claims=names.claims(name, count, bool(spread)),
            stands=held_at is not None and (namespace, name) not in reserving and _is_granted(pk, now),
        )
        for pk, name, number, count, held_at, own_claim, spread, namespace, resource, path in rows
    ]
    return [*found, *_without_row(cluster, snapshot, found)]


def _is_granted(pk: UUID, now: datetime) -> bool:
    """Whether a hold whose lease has no reservation may still stand: its lease was deleted, and is made again."""
    row = spec_of_row.rows().get(pk=pk)
    snapshot = mirror.of_allocations(row.project.cluster_id, row.project.namespace, [row])
    asked = spec_of_row.resolved_spec(row)
    return hold_mode.assess(asked, spec_of_row.intent(row), snapshot, {}, now, spec_of_row.deadlines(row)).is_granted


def _without_row(cluster: str, snapshot: Snapshot, found: Iterable[Hold]) -> list[Hold]:
    """Leases that no row belongs to: the database came back from a backup, and they become rows again, or cannot
    (``allocations.reconcile.recovery``). Nothing of them is ended blindly."""
    known = {(hold.namespace, hold.name) for hold in found}
    there = {
        (lease.ref.namespace, lease.allocation): lease for lease in snapshot.of_kind("Workload") if lease.allocation
    }
    unknown = {name for _, name in there.keys() - known}
    rows = Allocation.objects.filter(project__cluster=cluster, name__in=unknown)
    ended = rows.values_list("project__namespace", "name") if unknown else ()
    return [
        Hold(
            id=lease.uid,
            name=name,
            namespace=namespace,
            number=None,
            amounts={**sum(map(Counter, lease.facts["usage"].values()), Counter[str]()), DEVICES: None},
        )
        for (namespace, name), lease in there.items()
        if (namespace, name) not in known | set(ended)
    ]
