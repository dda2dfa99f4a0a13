"""Lists the holds of a cluster with what the lease of each reserves, for ``allocations.lifecycle.lease_excess``."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from allocations.cluster import names
from allocations.domain.allocation_spec import SPREAD, LeaseRecord
from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.domain.objects import Snapshot
from allocations.domain.observed_facts import workload_facts
from allocations.lifecycle import lease_excess, spec_of_row
from allocations.lifecycle.assessment import assess
from allocations.lifecycle.lease_excess import DEVICES, Hold
from allocations.models import Allocation
from allocations.reconcile import mirror
from portal.core.reading import Columns, read_tables

IS_SPREAD = f"constraints__{SPREAD}"
COLUMNS = (
    *("pk", "name", "number", "count", "held_at", "is_custom_claim", IS_SPREAD),
    *("project__namespace", "offering__resource", "offering__flavor__path"),
)


def holds(cluster: str, snapshot: Snapshot, **filters: str) -> list[Hold]:
    """Return the live allocations of a cluster, and its leases without a row. ``filters`` restrict the allocations.

    Two queries, and a few for each allocation whose lease is gone while its slices are held.
    """
    [rows] = read_tables(part(cluster, **filters))
    return of_rows(cluster, rows, snapshot)


def part(cluster: str, **filters: str) -> Columns:
    """Return what to read of the live allocations of a cluster for ``of_rows`` (``portal.core.reading``)."""
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None, **filters).order_by()
    return Columns(live.annotate(is_custom_claim=Q(claim__isnull=False)), COLUMNS)


def of_rows(cluster: str, rows: Iterable[Any], snapshot: Snapshot) -> list[Hold]:
    """Return what ``holds`` returns, given what was read of its part."""
    reserving = lease_excess.reserving(snapshot)
    found = [
        Hold(
            id=row.pk,
            name=row.name,
            namespace=row.project__namespace,
            number=row.number,
            amounts={
                DEVICES if row.offering__flavor__path in NAMING_PATHS else row.offering__resource: None
                if row.is_custom_claim
                else row.count
            },
            claims=names.claims(row.name, row.count, bool(getattr(row, IS_SPREAD))),
            may_hold_without_lease=row.held_at is not None
            and (row.project__namespace, row.name) not in reserving
            and _is_granted(row.pk),
        )
        for row in rows
    ]
    lost = _without_row(cluster, snapshot, found)
    names_of_lost = {(hold.namespace, hold.name) for hold in lost}
    return [*(hold for hold in found if (hold.namespace, hold.name) not in names_of_lost), *lost]


def _is_granted(pk: str) -> bool:
    """Return whether an allocation may hold slices although its lease has no reservation (it is created again)."""
    row = spec_of_row.rows().get(pk=pk)
    return assess(row, mirror.of_allocations(row.project.cluster_id, row.project.namespace, [row])).is_granted


def _without_row(cluster: str, snapshot: Snapshot, with_row: Iterable[Hold]) -> list[Hold]:
    """Return the leases without a row, each with the use that it reserves.

    After a restore of the database their rows are created again, if possible (``allocations.reconcile.recovery``).
    Another allocation may have the same name: it has ended, or it ended after the backup and is still live in the
    database.
    """
    ids = {(hold.namespace, hold.name): hold.id for hold in with_row}
    leases = {
        (lease.ref.namespace, lease.allocation): lease for lease in snapshot.of_kind("Workload") if lease.allocation
    }
    records = {pair: LeaseRecord.id_in(workload_facts(lease).get("record", "")) for pair, lease in leases.items()}
    records = {pair: id_ for pair, id_ in records.items() if pair not in ids or id_ not in ("", ids[pair])}
    rows = Allocation.objects.filter(project__cluster=cluster, name__in={name for _, name in records})
    known = rows.values_list("project__namespace", "name", "pk") if records else ()
    with_rows = {(namespace, name) for namespace, name, pk in known if records.get((namespace, name)) in ("", str(pk))}
    return [
        Hold(
            id=lease.uid,
            name=name,
            namespace=namespace,
            number=None,
            amounts={**sum(map(Counter, workload_facts(lease)["usage"].values()), Counter[str]()), DEVICES: None},
        )
        for (namespace, name), lease in leases.items()
        if (namespace, name) in records.keys() - with_rows
    ]
