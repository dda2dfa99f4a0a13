"""The numbers of a project's live allocations: the smallest that is free."""

from itertools import count

from allocations.models import Allocation
from portal.tenants.models import Project


def free(project: Project) -> int:
    """The smallest number that no live allocation of the project has.

    A number is free again when its allocation has ended, thus when no pod of its PriorityClass is left. Whoever writes
    it holds the advisory lock ``live`` of the project.
    """
    taken = _taken(project)
    return next(number for number in count() if number not in taken)


def of_adopted(project: Project, number: int | None) -> int:
    """The number that an allocation had before its row was lost, unless another has it by now."""
    return number if number is not None and number not in _taken(project) else free(project)


def _taken(project: Project) -> set[int]:
    return set(Allocation.objects.filter(project=project, ended_at=None).values_list("number", flat=True))
