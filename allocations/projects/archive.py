"""Archives and restores projects, with a preview of what would end.

Archiving writes intent only. The reconciler ends what is held, and deletes the namespace after the last allocation has
ended (`allocations.reconcile.teardown`); the project's history stays readable.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from django.db import transaction
from django.db.models import QuerySet

from allocations.cluster import namespaces
from allocations.cluster.client import connect
from allocations.domain.phases import Ending
from allocations.lifecycle import spec_of_row, transitions
from allocations.models import Allocation, MirrorObject
from allocations.requests import selectors
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access, structure
from portal.tenants.models import Project, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


@dataclass(frozen=True)
class ArchivePreview:
    """What archiving would end. ``per_hour`` is what the held allocations cost now, and would no longer."""

    allocations: tuple[Allocation, ...]
    jobs: tuple[str, ...]
    per_hour: Fraction
    currency: str
    deletes_namespace: bool


def preview(user: User, project: Project) -> ArchivePreview:
    """What would end; writes nothing. Raises Forbidden, NotVisible; ClusterUnavailable where Jobs cannot be read."""
    access.require(user, "structure.manage", project.team)
    live = list(_live(project))
    known = selectors.details(live)
    held = [known[row.pk] for row in live if row.held_at is not None]
    return ArchivePreview(
        allocations=tuple(live),
        jobs=tuple(job.name for job in namespaces.queued_jobs(connect(project.cluster_id), project.namespace)),
        per_hour=sum((detail.per_hour or Fraction(0) for detail in held), Fraction(0)),
        currency=next((detail.currency for detail in known.values()), ""),
        deletes_namespace=not project.adopted,
    )


def require_confirmation(project: Project, confirm: str) -> None:
    """Raise Invalid unless a person wrote the slug of the project that is to end."""
    if confirm != project.slug:
        raise Invalid(
            {"confirm": [f"Write {project.slug}, the project's slug, to archive it."]},
            hint=f'Send "confirm": "{project.slug}". "dry_run": true, which needs none, says what would end.',
        )


def archive(user: User, project: Project) -> None:
    """End all that lives in the project, and take it out of use. Archiving it twice is the same as once."""
    access.require(user, "structure.manage", project.team)
    with transaction.atomic(), advisory_lock("live", project.slug):  # what is asked for meanwhile is refused, or ended
        structure.archive_project(project, actor=user.username)
        for row in _live(project):
            message = f"The project {project.slug} was archived."
            if transitions.end(row, Ending.PERSON, "project_archived", message, actor=user.username):
                workqueue.enqueue(targets.allocation(project.cluster_id, row.pk))


def unarchive(user: User, project: Project) -> None:
    """Take the project into use again, with nothing in it. Refused while something of before still ends."""
    access.require(user, "structure.manage", project.team)
    with transaction.atomic(), advisory_lock("live", project.slug):
        if project.archived_at is not None and (left := _live(project).count()):
            raise Refused(
                "wrong_phase",
                f"{left} allocations of {project.slug} are still ending.",
                "Try again when they have ended.",
            )
        structure.unarchive_project(project, actor=user.username)


def remaining(projects: Iterable[Project]) -> dict[str, list[str]]:
    """Return by project slug what keeps its namespace from being deleted, in Kubernetes' words; one query. Projects
    whose namespace is not being deleted, or that nothing keeps, are left out.
    """
    slugs = {
        (project.cluster_id, project.namespace): project.slug
        for project in projects
        if project.archived_at is not None and not project.adopted
    }
    seen = MirrorObject.objects.filter(kind="Namespace", name__in={name for _, name in slugs}, deleting=True)
    return {
        slugs[there]: row.facts["remaining"]
        for row in seen
        if row.facts.get("remaining") and (there := (row.cluster_id, row.name)) in slugs
    }


def _live(project: Project) -> QuerySet[Allocation]:
    return spec_of_row.rows().select_related("offering__pool").filter(project=project, ended_at=None).order_by("name")
