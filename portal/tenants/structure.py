"""Changes of existing departments, teams and projects: rename, move, archive, guard.

Slugs never change, since objects in the cluster and rows of the ledger carry them; names are for people. Each function
checks permission and writes in one transaction with an audit entry. `allocations.projects` checks what runs in a
project that is moved or archived, and counts limits anew after a move.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.audit.entries import audit
from portal.core import clock, protected
from portal.core.errors import Invalid, Refused
from portal.core.locks import RowLock, advisory_lock, unlocked
from portal.tenants import access
from portal.tenants import object_limits as limits
from portal.tenants.actors import Actor
from portal.tenants.models import MAX_DEPTH, Department, Guard, HierarchyChange, Project, Team
from portal.tenants.project_options import SETTINGS
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

ACTION = "structure.manage"
NAME_MAX = 100
STORE = ("object_limits", "config_size_kib")
"""What bounds what a project may store in etcd."""
CHOICES = {field.name: [value for value, _ in field.choices] for field in Project._meta.fields if field.choices}


def rename(actor: Actor, row: Department | Team | Project, name: str) -> None:
    """Change the displayed name: of projects leads, too. Raises NotVisible, Forbidden, Invalid."""
    if isinstance(row, Project):
        access.require(actor, "project.rename", row.team)
    else:
        access.require(actor, ACTION, None)
    if not 0 < len(name.strip()) <= NAME_MAX:
        raise Invalid({"name": [f"Give 1 to {NAME_MAX} characters."]})
    _change(actor, row, "rename", {"name": name.strip()})


def check_place(department: Department, parent: Department | None) -> None:
    """Raise Invalid if `department` would be within itself under `parent`, or more than `MAX_DEPTH` deep."""
    above = 0
    while parent is not None:
        above += 1
        if parent == department:
            raise Invalid({"parent": ["A department cannot be within itself. Choose one that is not below it."]})
        parent = parent.parent
    if above + _height(department) > MAX_DEPTH:
        raise Invalid({"parent": [f"Departments go at most {MAX_DEPTH} deep. Choose one that is higher up."]})


def _height(department: Department) -> int:
    """Return the number of levels from the department down."""
    level, levels = [department.pk], 0
    while any(level):
        levels += 1
        level = list(Department.objects.filter(parent__in=level).values_list("pk", flat=True))
    return max(levels, 1)


def set_parent(actor: Actor, department: Department, parent: Department | None) -> None:
    """Move a department within another, or to the top."""
    access.require(actor, ACTION, None)
    with transaction.atomic(), advisory_lock("departments"):
        if parent is not None:  # as it is now: someone may have put it elsewhere before we had the lock
            parent = Department.objects.get(pk=parent.pk)
        check_place(department, parent)
        if _change(actor, department, "move", {"parent": parent}):
            record_parent(department)
            workqueue.enqueue(*targets.platforms())


def move_team(actor: Actor, team: Team, department: Department) -> None:
    """Move the team to another department, with which it lends and borrows from now on. Past usage stays."""
    access.require(actor, ACTION, team)
    with transaction.atomic():
        if _change(actor, team, "move", {"department": department}):
            record_parent(team)
            found = team.projects.values_list("cluster", "slug")
            workqueue.enqueue(*targets.platforms(), *(targets.project(*one) for one in found))


def delete_team(actor: Actor, team: Team) -> None:
    """Delete a team that never had a project, a quota or a policy, with its members and invitations. Raises Refused."""
    access.require(actor, ACTION, team)
    with transaction.atomic():
        team = Team.objects.select_for_update().get(pk=team.pk)
        slug = team.slug
        if kept := _kinds_that_keep(team):
            raise Refused(
                "wrong_phase",
                f"{slug} has, or has had, what costs or limits refer to: {', '.join(kept)}.",
                "It stays, and can be renamed. Archive its projects and remove its quotas; then nobody can request"
                " anything in it.",
            )
        members = dict(team.memberships.order_by("user").values_list("user__username", "role"))
        before = {"name": team.name, "department": team.department.slug, "members": members}
        HierarchyChange.objects.filter(team=team).delete()
        team.delete()
        audit(actor.username, "team.delete", slug, team=slug, before=before)
        workqueue.enqueue(*targets.platforms())


def _kinds_that_keep(team: Team) -> list[str]:
    """Return the kinds of rows, besides its place in the hierarchy, that keep the team from being deleted."""
    keeping = [one for one in protected.relations(Team) if one.related_model is not HierarchyChange]
    found = (one for one in keeping if one.related_model._default_manager.filter(**{one.field.name: team}).exists())
    return sorted(str(one.related_model._meta.verbose_name) for one in found)


def record_parent(row: Team | Department) -> None:
    """Record the department that the team or department is in from now on. Called in the transaction of the change."""
    if isinstance(row, Team):
        HierarchyChange.objects.create(at=clock.now(), team=row, parent=row.department)
    else:
        HierarchyChange.objects.create(at=clock.now(), department=row, parent=row.parent)


def move_project(actor: Actor, project: Project, team: Team) -> None:
    """Move the project, with its namespace, to another team. Past usage stays with the old team."""
    access.require(actor, ACTION, project.team)
    with transaction.atomic():
        if _change(actor, project, "move", {"team": team}):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))


def change_project(
    actor: Actor, project: Project, changes: Mapping[str, Any], lock: RowLock[Project] = unlocked
) -> Project:
    """Rename the project (leads), or change options of its namespace (operators), and return it.

    ``changes`` are of ``name`` and `ProjectOptions`; a kind that ``object_limits`` lacks stays as it is. Raises
    NotVisible, Forbidden, Invalid.
    """
    access.require(actor, "project.rename", project.team)
    options = {name: changes[name] for name in (*SETTINGS, *STORE) if name in changes}
    if options:
        access.require(actor, ACTION, project.team)
    with transaction.atomic():
        project = lock(project)
        for name in options.keys() & CHOICES.keys():
            if options[name] not in CHOICES[name]:
                raise Invalid({name: [f"Use one of {', '.join(CHOICES[name])}."]})
        if options.keys() & {*STORE}:
            store = (options.get(name) for name in STORE)
            options |= checked_store(project, *store, is_adopted=project.adopted)
        if _change(actor, project, "configure", options):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))
        if "name" in changes:
            rename(actor, project, changes["name"])
    return project


def checked_store(
    project: Project | None,
    object_limits: Mapping[str, int | None] | None,
    config_size_kib: int | None,
    *,
    is_adopted: bool,
) -> dict[str, Any]:
    """Return both fields of a project with these values set; raise Invalid above the bound of a project."""
    before = (project.object_limits, project.config_size_kib) if project else ({}, limits.CONFIG_KIB)
    size_kib = before[1] if config_size_kib is None else config_size_kib
    limits.check_config_size(size_kib)
    after = (limits.merge(before[0], object_limits or {}, is_adopted=is_adopted), size_kib)
    field = "object_limits" if object_limits else "config_size_kib"
    limits.check_bound(before, after, settings.PROJECT_STORE_MIB, field, is_adopted=is_adopted)
    return {"object_limits": after[0], "config_size_kib": after[1]}


def set_guard(actor: Actor, project: Project, guard: str) -> None:
    """Set whether the policies warn of new pods in the project's namespace, or refuse them; running pods are not
    affected. Raises Refused for a namespace that the portal created, which always refuses.
    """
    access.require(actor, ACTION, project.team)
    if guard not in Guard.values:
        raise Invalid({"guard": [f"Use one of {', '.join(Guard.values)}."]})
    if guard == Guard.AUDIT and not project.adopted:
        raise Refused(
            "wrong_phase",
            f"The namespace of {project.slug} is the portal's own, and guarded from birth.",
            "Only an adopted namespace can be guarded by warnings alone.",
        )
    with transaction.atomic():
        if _change(actor, project, "guard", {"guard": guard}):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))


def archive_project(actor: Actor, project: Project) -> bool:
    """Archive the project; return False if it was archived before."""
    access.require(actor, ACTION, project.team)
    return _set_archived(actor, project, "archive", clock.now())


def unarchive_project(actor: Actor, project: Project) -> bool:
    """Restore the project, empty; the guard of an adopted namespace only warns at first."""
    access.require(actor, ACTION, project.team)
    with transaction.atomic():
        changed = _set_archived(actor, project, "unarchive", None)
        if changed and project.adopted:
            _change(actor, project, "guard", {"guard": Guard.AUDIT.value})
    return changed


def _set_archived(actor: Actor, project: Project, action: str, at: Any) -> bool:
    with transaction.atomic():
        found = Project.objects.filter(pk=project.pk, archived_at__isnull=at is not None)
        changed = bool(found.update(archived_at=at))
        if changed:
            before, project.archived_at = project.archived_at, at
            team, slug = _audit_scope(project)
            values = ({"archived_at": before}, {"archived_at": at})
            audit(actor.username, f"project.{action}", slug, team=team, project=slug, before=values[0], after=values[1])
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))
    return changed


def _change(actor: Actor, row: Department | Team | Project, action: str, values: dict[str, Any]) -> bool:
    """Write the values that differ, with an audit entry; return whether any did."""
    before = {name: getattr(row, name) for name in values}
    changed = [name for name in values if before[name] != values[name]]
    if not changed:
        return False
    concerned = {_audit_scope(row)}
    for name in changed:
        setattr(row, name, values[name])
    concerned.add(_audit_scope(row))
    with transaction.atomic():
        row.save(update_fields=changed)
        was, is_ = ({name: _plain(found[name]) for name in changed} for found in (before, values))
        for team, project in sorted(concerned):  # two for a project that moves: the leads of both teams read of it
            verb = f"{row._meta.verbose_name}.{action}"
            audit(actor.username, verb, row.slug, team=team, project=project, before=was, after=is_)
    return True


def _audit_scope(row: Department | Team | Project) -> tuple[str, str]:
    """Return the slugs of team and project for an audit entry about `row`; both are empty for a department."""
    match row:
        case Project():
            return row.team.slug, row.slug
        case Team():
            return row.slug, ""
        case Department():
            return "", ""


def _plain(value: Any) -> Any:
    return value.slug if isinstance(value, Department | Team) else value
