"""The numbers of a project's live allocations: the smallest that is free."""

from itertools import count

from allocations.cluster import names
from allocations.models import Allocation, MirrorObject
from portal.tenants.models import Project


def free(project: Project) -> int:
    """The smallest number that no live allocation of the project has.

    A number is free again when its allocation has ended, thus when no pod of its PriorityClass is left. Whoever writes
    it holds the advisory lock ``live`` of the project.
    """
    taken = _taken(project)
    return next(number for number in count() if number not in taken)


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


def _is_listed(project: Project, row: Allocation) -> bool:
    quota = {"kind": "ResourceQuota", "namespace": project.namespace, "name": names.hold_slot(row.number)}
    return MirrorObject.objects.filter(**quota, facts__slices__has_key=row.name).exists()


def _taken(project: Project) -> set[int]:
    return set(Allocation.objects.filter(project=project, ended_at=None).values_list("number", flat=True))
