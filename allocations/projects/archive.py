"""Archives and restores projects, with a preview of what would end.

Archiving writes intent only. The controllers end the allocations, and delete the namespace after the last one has ended
(`allocations.reconcile.teardown`). The project's history stays readable.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from django.db import transaction
from django.db.models import QuerySet

from allocations.cluster import namespaces
from allocations.cluster.client import connect
from allocations.domain.observed_facts import namespace_facts
from allocations.domain.phases import Ending
from allocations.lifecycle import spec_of_row, transitions
from allocations.models import Allocation, MirrorObject
from allocations.requests import details
from allocations.requests.details import Detail
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access, structure
from portal.tenants.models import Project, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


@dataclass(frozen=True)
class ArchivePreview:
    """What archiving would end.

    ``per_hour`` is the current cost of the held allocations. It is without the number of ``unpriced`` ones, which have
    no price, and None if none of them has one.
    """

    allocations: tuple[Allocation, ...]
    jobs: tuple[str, ...]
    per_hour: Fraction | None
    unpriced: int
    currency: str
    deletes_namespace: bool


def preview(user: User, project: Project) -> ArchivePreview:
    """Return what archiving would end; write nothing. Raises Forbidden, NotVisible, ClusterUnavailable."""
    access.require(user, "structure.manage", project.team)
    live = list(_live(project))
    shown = details.by_id(live)
    per_hour, unpriced = cost_per_hour([shown[row.pk] for row in live if row.held_at is not None])
    return ArchivePreview(
        allocations=tuple(live),
        jobs=tuple(job.name for job in namespaces.queued_jobs(connect(project.cluster_id), project.namespace)),
        per_hour=per_hour,
        unpriced=unpriced,
        currency=next((detail.currency for detail in shown.values()), ""),
        deletes_namespace=not project.adopted,
    )


def cost_per_hour(held: Sequence[Detail]) -> tuple[Fraction | None, int]:
    """Return what held allocations cost now, None if none of them has a price, and how many have none."""
    prices = [detail.per_hour for detail in held if detail.per_hour is not None]
    return None if held and not prices else sum(prices, Fraction(0)), len(held) - len(prices)


def require_confirmation(project: Project, confirm: str) -> None:
    """Raise Invalid unless ``confirm`` is the project's slug."""
    if confirm != project.slug:
        raise Invalid(
            {"confirm": [f"Write {project.slug}, the project's slug, to archive it."]},
            hint=f'Send "confirm": "{project.slug}". "dry_run": true, which needs none, says what would end.',
        )


def archive(user: User, project: Project) -> None:
    """End all allocations of the project, and archive it. Archiving it again changes nothing. Raises Forbidden."""
    access.require(user, "structure.manage", project.team)
    with transaction.atomic(), advisory_lock("live", project.slug):  # excludes concurrent requests
        structure.archive_project(user, project)
        for row in _live(project):
            message = f"The project {project.slug} was archived."
            if transitions.end(row, Ending.PERSON, "project_archived", message, actor=user.username):
                workqueue.enqueue(targets.allocation(project.cluster_id, row.pk))


def unarchive(user: User, project: Project) -> None:
    """Restore the project, without its former allocations. Raises Forbidden; Refused while one is still ending."""
    access.require(user, "structure.manage", project.team)
    with transaction.atomic(), advisory_lock("live", project.slug):
        if project.archived_at is not None and (ending := _live(project).count()):
            raise Refused(
                "wrong_phase",
                f"{ending} allocations of {project.slug} are still ending."
                if ending > 1
                else f"An allocation of {project.slug} is still ending.",
                "Try again when they have ended.",
            )
        structure.unarchive_project(user, project)


def remaining(projects: Iterable[Project]) -> dict[str, list[str]]:
    """Return by project slug why its namespace is still being deleted, as Kubernetes states it; one query.

    Projects without such a reason are left out.
    """
    slugs = {
        (project.cluster_id, project.namespace): project.slug
        for project in projects
        if project.archived_at is not None and not project.adopted
    }
    terminating = MirrorObject.objects.filter(kind="Namespace", name__in={name for _, name in slugs}, deleting=True)
    return {
        slugs[key]: namespace_facts(row)["remaining"]
        for row in terminating
        if namespace_facts(row).get("remaining") and (key := (row.cluster_id, row.name)) in slugs
    }


def removal_command(project: Project) -> str:
    """Return the command that takes the finalizers off an object that keeps the project's namespace."""
    patch = '{"metadata": {"finalizers": null}}'
    return f"kubectl patch <kind> <name> -n {project.namespace} --type=merge -p '{patch}'"


def _live(project: Project) -> QuerySet[Allocation]:
    return spec_of_row.rows().select_related("offering__pool").filter(project=project, ended_at=None).order_by("name")
