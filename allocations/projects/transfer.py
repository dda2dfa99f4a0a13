"""Moves projects, teams and departments. A project must be empty: what it holds is quota of the old team.

A lease keeps the quota of the ClusterQueue that admitted it, and Kueue cannot carry it over; a LocalQueue's
ClusterQueue cannot be changed, so it is deleted and created again. The ledger's rows carry the team's name as it was
when they began, so past costs stay where they were.
"""

from django.db import transaction

from allocations.capacity.recount import recount_departments
from allocations.cluster import namespaces
from allocations.cluster.client import connect
from allocations.models import Allocation
from portal.core.errors import Refused
from portal.core.locks import advisory_lock
from portal.tenants import access, structure
from portal.tenants.models import Department, Project, Team, User

SHOWN = 5


def move(user: User, project: Project, team: Team) -> None:
    """Give the project to another team: its people leave the namespace, and the new team's come in.

    Raises Forbidden, NotVisible; Refused ``wrong_phase`` while the project is archived, or something lives in it.
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
        _refuse_while("allocations", project, list(live.values_list("name", flat=True)), "Release them")
        _refuse_while("queued Jobs", project, jobs, "Delete them")
        structure.move_project(project, team, actor=user.username)


def move_team(user: User, team: Team, department: Department) -> None:
    """Have the team lend to and borrow from another department; limits that the portal counts are counted anew."""
    access.require(user, "structure.manage", team)
    with transaction.atomic(), advisory_lock("limits"):
        structure.move_team(team, department, actor=user.username)
        recount_departments()


def move_department(user: User, department: Department, parent: Department | None) -> None:
    """Put the department, with all below it, within `parent`, or at the top. Raises Invalid where it cannot."""
    access.require(user, "structure.manage", None)
    with transaction.atomic(), advisory_lock("limits"):
        structure.set_parent(department, parent, actor=user.username)
        recount_departments()


def _refuse_while(what: str, project: Project, names: list[str], do: str) -> None:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise Refused(
            "wrong_phase",
            f"{project.slug} has {what} on {project.team.slug}'s quota: {', '.join(names[:SHOWN])}{more}.",
            f"{do}, or wait until they have ended; then move the project.",
        )
