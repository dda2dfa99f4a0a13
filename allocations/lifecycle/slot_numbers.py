"""Assigns slot numbers to a project's live allocations: the smallest that is free.

An allocation gets its number with the request, or at its start if it is scheduled; it may have to wait for one.
"""

import json
from collections.abc import Container
from itertools import count

from django.db import transaction

from allocations.capacity import allocation_limits
from allocations.cluster import names
from allocations.domain.admission import AllocationLimit
from allocations.models import Allocation, MirrorObject, WatchState
from portal.core import clock
from portal.core.errors import Retryable
from portal.core.locks import advisory_lock
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

LISTED_AGAIN_S = 1.0


def free(project: Project) -> int:
    """Return the smallest number that no live allocation of the project has.

    A number becomes free when its allocation has ended, and then no pod of its PriorityClass is left. The caller holds
    the advisory lock ``live`` of the project while it assigns the number.
    """
    return smallest_free(_assigned(project))


def smallest_free(assigned: Container[int | None]) -> int:
    """Return the smallest number that is not assigned."""
    return next(number for number in count() if number not in assigned)


def assign(row: Allocation) -> str:
    """Assign a number to an allocation that starts; return why it has to wait for one, or "".

    Then enqueue the next allocations that wait. If its lease has a number already (after a restore of the database), it
    gets that one even if limits are reached. Raises Retryable as ``number_of_recovered`` does.
    """
    with transaction.atomic(), advisory_lock("live", row.project.slug):
        row.refresh_from_db(fields=["number"])
        if row.number is not None:
            return ""
        lease_number, revision = _number_of_lease(row)
        full = [one for one in allocation_limits.applicable_limits(row.project, row.requested_by).live if one.is_full]
        if lease_number is None and full:
            return _wait_message(full[0])
        number = number_of_recovered(row.project, lease_number, revision)
        Allocation.objects.filter(pk=row.pk).update(number=number)
        row.number = number
        wake_waiting(row.project)
    return ""


def wake_waiting(project: Project) -> None:
    """Enqueue each member's first allocation that waits for a number, since one may be free."""
    waiting = Allocation.objects.filter(
        project=project, ended_at=None, number=None, desired=Allocation.Desired.HELD, starts_at__lte=clock.now()
    )
    first = waiting.order_by("requested_by", "starts_at", "created_at", "pk").distinct("requested_by")
    workqueue.enqueue(*(targets.allocation(project.cluster_id, pk) for pk in first.values_list("pk", flat=True)))


def number_of_recovered(project: Project, number: int | None, revision: int) -> int:
    """Return the number for a recovered allocation: the one of its lease, since its hold quota and pods have it.

    If another row has that number, the other row gets a free one. If the number's hold quota lists the other row, the
    recovered one gets a free number instead: its own was assigned again after the backup.

    Raises Retryable until quotas are mirrored up to ``revision``, the lease's: the backup's mirror has the quota as it
    was when the other row had the number.
    """
    if number is None:
        return free(project)
    quotas = WatchState.objects.filter(cluster=project.cluster_id, kind="ResourceQuota")
    if not quotas.filter(resource_version__gte=revision).exists():
        message = f"quotas were not listed since revision {revision}, at which a lease has number {number}"
        raise Retryable(message, after_s=LISTED_AGAIN_S)
    other = Allocation.objects.filter(project=project, ended_at=None, number=number).first()
    if other is not None and _is_listed(project, other):
        return free(project)
    if other is not None:
        Allocation.objects.filter(pk=other.pk).update(number=free(project))
    return number


def _wait_message(full: AllocationLimit) -> str:
    subject = "Its member has" if full.holder == "member" else "The project has"
    where = " in the project" if full.holder == "member" else ""
    return (
        f"{subject} {full.used} live allocations{where}; the limit is {full.limit}. It joins the queue when one of "
        "them has ended. Release one that is no longer needed."
    )


def _number_of_lease(row: Allocation) -> tuple[int | None, int]:
    """Return the number in the record of the allocation's lease in the mirror, or None; and the lease's revision."""
    leases = MirrorObject.objects.filter(cluster=row.project.cluster_id, kind="Workload", deleting=False)
    found = (
        leases.filter(namespace=row.project.namespace, name=names.lease(row.name))
        .values_list("facts__record", "resource_version")
        .first()
    )
    text, revision = found or ("", 0)
    record = json.loads(text or "{}")
    return record.get("number") if record.get("id") == str(row.pk) else None, revision


def _is_listed(project: Project, row: Allocation) -> bool:
    quotas = MirrorObject.objects.filter(cluster=project.cluster_id, kind="ResourceQuota", namespace=project.namespace)
    return quotas.filter(name=names.hold_slot(row.number), facts__slices__has_key=row.name).exists()


def _assigned(project: Project) -> set[int | None]:
    return set(Allocation.objects.filter(project=project, ended_at=None).values_list("number", flat=True))
