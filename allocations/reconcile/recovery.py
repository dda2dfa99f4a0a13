"""Recovers allocations whose row was lost: creates a row for each lease of the portal that has none.

After the database was restored from a backup, the cluster still has the allocations requested since. None of them is
deleted: the lease has the whole request, so the row is created again from it, flagged ``recovered``.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction

from allocations.capacity.recount import recount_limits_on
from allocations.domain.allocation_spec import LeaseRecord
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed_facts import workload_facts
from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import slot_numbers, spec_of_row, transitions
from allocations.lifecycle.assessment import assess
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.engine.applied import forget
from allocations.reconcile.metering import ledger
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.models import Project, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Offering

log = structlog.get_logger(__name__)
NAME_RECOVERED = (
    "After a restore of the database, the cluster has another allocation of this name, which is recovered; this one "
    "holds nothing. If it is still needed, request it again under another name."
)

# The leases of a namespace without a live row, and the live rows without a number that have a lease.
LOST = """
    WITH lease AS (
        SELECT id, allocation FROM allocations_mirrorobject
        WHERE cluster_id = %(cluster)s AND namespace = %(namespace)s AND kind = 'Workload'
            AND allocation <> '' AND NOT deleting
    ), live AS (
        SELECT row.id, row.name, row.number
        FROM allocations_allocation AS row JOIN tenants_project AS project ON project.id = row.project_id
        WHERE project.cluster_id = %(cluster)s AND project.namespace = %(namespace)s AND row.ended_at IS NULL
    )
    SELECT (SELECT array_agg(id) FROM lease WHERE allocation NOT IN (SELECT name FROM live)),
        (SELECT array_agg(id) FROM live WHERE number IS NULL AND name IN (SELECT allocation FROM lease))
"""


def reconcile_adoption(cluster: str) -> datetime | None:
    """Create the missing row of each lease in the cluster's mirror.

    Return None, since the target is enqueued for each further lease without a row. Raises Retryable as ``adopt`` does.
    """
    leases = MirrorObject.objects.filter(cluster=cluster, kind="Workload")
    for namespace in leases.values_list("namespace", flat=True).distinct().order_by():
        adopt(cluster, namespace)
    return None


def may_have_lost(rows: Iterable[Allocation], snapshot: Snapshot) -> bool:
    """Return whether ``adopt`` may have something to do, given a namespace's live rows, and its objects."""
    numbered = {row.name for row in rows if row.number is not None}
    leases = (lease for lease in snapshot.of_kind("Workload") if lease.allocation and not lease.deleting)
    return any(lease.allocation not in numbered for lease in leases)


def end_if_superseded(row: Allocation, found: ObservedObject, applied: Iterable[Ref]) -> bool:
    """End a live allocation if ``found``, the lease of its name, is that of an allocation without a row, and have that
    one recovered; return whether it was.

    Either the database lost the end of this one together with the request of the other, or this one was requested
    before the other was recovered. Nothing on the cluster is its own, and none of it was since the other's request.
    """
    text = workload_facts(found).get("record", "")
    if found.deleting or not LeaseRecord.is_of_another(text, row.pk):
        return False
    try:
        record = LeaseRecord.from_text(text)
    except (ValueError, KeyError):
        return False
    if Allocation.objects.filter(pk=record.id).exists():
        return False
    cluster = row.project.cluster_id
    transitions.end(row, Ending.PERSON, "name_recovered", NAME_RECOVERED, actor="portal")
    ledger.close_all(row, at=record.created_at)
    state = assess(row, Snapshot())
    transitions.record_time(row, state)
    transitions.record_phase(row, state)
    forget(cluster, applied)
    workqueue.enqueue(targets.adoption(cluster))
    return True


def adopt(cluster: str, namespace: str) -> None:
    """Create the missing rows of a namespace's leases, and assign the lease's number to rows that have none.

    A lease is that of the allocation whose id its record has: the name may be that of others, which have ended, or that
    ``end_if_superseded`` ends first.

    A scheduled row of a backup has no number although its lease has one. The project controller calls this before it
    writes, since it would otherwise remove the quota of slices that are held.

    Raises Retryable until quotas are mirrored up to the revisions of the leases.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOST, {"cluster": cluster, "namespace": namespace})
        lease_keys, row_keys = cursor.fetchone()
    for lease in MirrorObject.objects.filter(pk__in=lease_keys) if lease_keys else ():
        _adopt(lease)
    scheduled = Allocation.objects.select_related("project", "requested_by")
    for row in scheduled.filter(pk__in=row_keys) if row_keys else ():
        slot_numbers.assign(row)


def _adopt(lease: MirrorObject) -> None:
    try:
        record = LeaseRecord.from_text(workload_facts(lease).get("record", ""))
        project = Project.objects.get(cluster=lease.cluster_id, slug=record.spec.project, namespace=lease.namespace)
        offering = Offering.objects.get(flavor__cluster=lease.cluster_id, key=record.spec.offering)
        person = User.objects.get(username=record.requested_by)
    except (ValueError, KeyError, Project.DoesNotExist, Offering.DoesNotExist, User.DoesNotExist) as error:
        log.warning("adoption.impossible", namespace=lease.namespace, lease=lease.name, error=repr(error))
        return
    if Allocation.objects.filter(pk=record.id).exists():  # it has ended, and its lease is about to be deleted
        return
    now = clock.now()
    with transaction.atomic(), advisory_lock("live", project.slug):
        row, is_created = Allocation.objects.get_or_create(
            id=record.id,
            defaults={
                **spec_of_row.columns(record.spec),
                "number": slot_numbers.number_of_recovered(project, record.number, lease.resource_version),
                "project": project,
                "offering": offering,
                "requested_by": person,
                "created_at": record.created_at,
                "held_before": timedelta(microseconds=int(record.held_seconds * 10**6)),
                "held_until": record.held_until,
                "phase": Phase.QUEUED.value,
                "phase_since": now,
                "recovered": True,
            },
        )
        if is_created:
            evidence = {
                "kind": "Workload",
                "name": lease.name,
                "resource_version": str(lease.resource_version),
            }
            message = "Made again from its lease: the database had lost it."
            recount_limits_on(row)
            ledger.hand_over(row)
            transitions.append(row, "recovered", actor="portal", reason="recovered", message=message, evidence=evidence)
            cluster = project.cluster_id
            workqueue.enqueue(targets.allocation(cluster, row.pk), targets.project(cluster, project.slug))
