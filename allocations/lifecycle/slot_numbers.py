"""Assigns the numbers of a project's live allocations: the smallest that is free.

An allocation gets its number with the request, or at its start if it is scheduled, and may have to wait for one.
"""

import json
from itertools import count

from django.db import transaction

from allocations.capacity import allocation_limits
from allocations.cluster import names
from allocations.domain.admission import AllocationLimit
from allocations.models import Allocation, MirrorObject
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def free(project: Project) -> int:
    """The smallest number that no live allocation of the project has.

    A number is free again when its allocation has ended, thus when no pod of its PriorityClass is left. Whoever writes
    it holds the advisory lock ``live`` of the project.
    """
    taken = _taken(project)
    return next(number for number in count() if number not in taken)


def assign(row: Allocation) -> str:
    """Give an allocation that starts its number, and wake the next one that waits for one; returns why it has to wait,
    else nothing. The number that its lease has is its own (after a restore), whatever the limits say."""
    with transaction.atomic(), advisory_lock("live", row.project.slug):
        row.refresh_from_db(fields=["number"])
        if row.number is not None:
            return ""
        leased = _of_lease(row)
        full = [one for one in allocation_limits.applicable_limits(row.project, row.requested_by).live if one.is_full]
        if leased is None and full:
            return _wait(full[0])
        number = free(row.project) if leased is None else of_adopted(row.project, leased)
        Allocation.objects.filter(pk=row.pk).update(number=number)
        row.number = number
        wake_waiting(row.project)
    return ""


def wake_waiting(project: Project) -> None:
    """Have each member's first allocation that waits for a number looked at: one may be free."""
    waiting = Allocation.objects.filter(
        project=project, ended_at=None, number=None, desired=Allocation.Desired.HELD, starts_at__lte=clock.now()
    )
    first = waiting.order_by("requested_by", "starts_at", "created_at", "pk").distinct("requested_by")
    workqueue.enqueue(*(targets.allocation(project.cluster_id, pk) for pk in first.values_list("pk", flat=True)))


def of_adopted(project: Project, number: int | None) -> int:
    """The number that an allocation had before its row was lost, since its quota and pods have it.

    Another row that has it by now gets a free one, unless the number's quota lists that row: it came back from a backup
    with a number that was given again since.
    """
    if number is None:
        return free(project)
    other = Allocation.objects.filter(project=project, ended_at=None, number=number).first()
    if other is not None and _is_listed(project, other):
        return free(project)
    if other is not None:
        Allocation.objects.filter(pk=other.pk).update(number=free(project))
    return number


def _wait(full: AllocationLimit) -> str:
    whose = "Its member has" if full.holder == "member" else "The project has"
    where = " in the project" if full.holder == "member" else ""
    return (
        f"{whose} {full.used} live allocations{where}; {full.limit} are the most. It joins the queue when one of them "
        "has ended. Release one that is no longer needed."
    )


def _of_lease(row: Allocation) -> int | None:
    """The number in the record of the allocation's lease, as the mirror has it."""
    leases = MirrorObject.objects.filter(cluster=row.project.cluster_id, kind="Workload", deleting=False)
    found = (
        leases.filter(namespace=row.project.namespace, name=names.lease(row.name))
        .values_list("facts__record", flat=True)
        .first()
    )
    record = json.loads(found or "{}")
    number: int | None = record.get("number") if record.get("id") == str(row.pk) else None
    return number


def _is_listed(project: Project, row: Allocation) -> bool:
    quotas = MirrorObject.objects.filter(cluster=project.cluster_id, kind="ResourceQuota", namespace=project.namespace)
    return quotas.filter(name=names.hold_slot(row.number), facts__slices__has_key=row.name).exists()


def _taken(project: Project) -> set[int | None]:
    return set(Allocation.objects.filter(project=project, ended_at=None).values_list("number", flat=True))
