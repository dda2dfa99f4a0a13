"""Moves projects to another team. A project must be empty, since what it holds is quota of the old team.

A lease keeps the quota of the ClusterQueue that admitted it. The ClusterQueue of a LocalQueue is immutable, so the
LocalQueue is deleted and created again. Usage intervals have the team's slug of their start, so past costs stay with
the old team.
"""

from django.db import transaction

from allocations.cluster import namespaces
from allocations.cluster.client import connect
from allocations.models import Allocation
from portal.core.errors import Refused
from portal.core.locks import advisory_lock
from portal.tenants import access, structure
from portal.tenants.models import Project, Team, User

MAX_NAMES_SHOWN = 5


def move(user: User, project: Project, team: Team) -> None:
    """Move the project to another team, whose members get access to the namespace instead of the old team's.

    Raises Forbidden, NotVisible; Refused ``wrong_phase`` if the project is archived or not empty.
    """
    access.require(user, "structure.manage", project.team)
    if project.team == team:
        return
    jobs = [job.name for job in namespaces.queued_jobs(connect(project.cluster_id), project.namespace)]
    with transaction.atomic(), advisory_lock("live", project.slug):
        project.refresh_from_db()
        if project.archived_at is not None:
            raise Refused("wrong_phase", f"The project {project.slug} is archived.", "Take it into use again first.")
        live = Allocation.objects.filter(project=project, ended_at=None).order_by("name")
        _require_empty("allocations", project, list(live.values_list("name", flat=True)), "Release them")
        _require_empty("queued Jobs", project, jobs, "Delete them")
        structure.move_project(user, project, team)


def _require_empty(subject: str, project: Project, names: list[str], remedy: str) -> None:
    """Raise Refused if there are ``names`` of allocations or Jobs in the project."""
    if names:
        more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
        raise Refused(
            "wrong_phase",
            f"{project.slug} has {subject} on {project.team.slug}'s quota: {', '.join(names[:MAX_NAMES_SHOWN])}{more}.",
            f"{remedy}, or wait until they have ended; then move the project.",
        )
