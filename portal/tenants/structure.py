"""Changes of existing departments, teams and projects: rename, move, archive, guard.

Slugs never change, since objects in the cluster and rows of the ledger carry them; names are for people. Each function
writes in one transaction with an audit entry. `allocations.projects` checks permission, and what runs in a project that
is moved or archived.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.audit.entries import audit
from portal.core import clock, protected
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants import object_limits as limits
from portal.tenants.models import (
    MAX_DEPTH,
    Department,
    Egress,
    Exposure,
    Guard,
    HierarchyChange,
    PodSecurity,
    Project,
    Team,
)
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

NAME_MAX = 100


def rename(row: Department | Team | Project, name: str, *, actor: str) -> None:
    """Change the displayed name."""
    if not 0 < len(name.strip()) <= NAME_MAX:
        raise Invalid({"name": [f"Give 1 to {NAME_MAX} characters."]})
    _change(row, "rename", {"name": name.strip()}, actor)


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


def set_parent(department: Department, parent: Department | None, *, actor: str) -> None:
    """Move a department within another, or to the top."""
    with transaction.atomic(), advisory_lock("departments"):
        if parent is not None:  # as it is now: someone may have put it elsewhere before we had the lock
            parent = Department.objects.get(pk=parent.pk)
        check_place(department, parent)
        if _change(department, "move", {"parent": parent}, actor):
            record_parent(department)
            workqueue.enqueue(*targets.platforms())


def move_team(team: Team, department: Department, *, actor: str) -> None:
    """Move the team to another department, with which it lends and borrows from now on. Past usage stays."""
    with transaction.atomic():
        if _change(team, "move", {"department": department}, actor):
            record_parent(team)
            found = team.projects.values_list("cluster", "slug")
            workqueue.enqueue(*targets.platforms(), *(targets.project(*one) for one in found))


def delete_team(team: Team, *, actor: str) -> None:
    """Delete a team that never had a project, a quota or a policy, with its members and invitations. Raises Refused."""
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
        audit(actor, "team.delete", slug, team=slug, before=before)
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


def move_project(project: Project, team: Team, *, actor: str) -> None:
    """Move the project, with its namespace, to another team. Past usage stays with the old team."""
    with transaction.atomic():
        if _change(project, "move", {"team": team}, actor):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))


def configure_project(
    project: Project,
    *,
    pod_security: str | None = None,
    egress: str | None = None,
    exposure: str | None = None,
    admin_access: bool | None = None,
    object_limits: Mapping[str, int | None] | None = None,
    config_size_kib: int | None = None,
    actor: str,
) -> None:
    """Change the settings of the namespace; None leaves a value as it is, and so does a kind missing in
    `object_limits`.
    """
    requested = {"pod_security": pod_security, "egress": egress, "exposure": exposure, "admin_access": admin_access}
    choices = {"pod_security": PodSecurity.values, "egress": Egress.values, "exposure": Exposure.values}
    for name, values in choices.items():
        if requested[name] is not None and requested[name] not in values:
            raise Invalid({name: [f"Use one of {', '.join(values)}."]})
    changes: dict[str, Any] = {name: value for name, value in requested.items() if value is not None}
    if object_limits is not None or config_size_kib is not None:
        changes |= checked_store(project, object_limits, config_size_kib, is_adopted=project.adopted)
    with transaction.atomic():
        if _change(project, "configure", changes, actor):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))


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
    field = "config_size_kib" if object_limits is None else "object_limits"
    limits.check_bound(before, after, settings.PROJECT_STORE_MIB, field, is_adopted=is_adopted)
    return {"object_limits": after[0], "config_size_kib": after[1]}


def set_guard(project: Project, guard: str, *, actor: str) -> None:
    """Set whether the policies warn or refuse in the project's namespace. Raises Refused for a namespace that the
    portal created, which always refuses.
    """
    if guard not in Guard.values:
        raise Invalid({"guard": [f"Use one of {', '.join(Guard.values)}."]})
    if guard == Guard.AUDIT and not project.adopted:
        raise Refused(
            "wrong_phase",
            f"The namespace of {project.slug} is the portal's own, and guarded from birth.",
            "Only an adopted namespace can be guarded by warnings alone.",
        )
    with transaction.atomic():
        if _change(project, "guard", {"guard": guard}, actor):
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))


def archive_project(project: Project, *, actor: str) -> bool:
    """Archive the project; return False if it was archived before."""
    return _set_archived(project, "archive", clock.now(), actor)


def unarchive_project(project: Project, *, actor: str) -> bool:
    """Restore the project, empty; the guard of an adopted namespace only warns at first."""
    with transaction.atomic():
        changed = _set_archived(project, "unarchive", None, actor)
        if changed and project.adopted:
            _change(project, "guard", {"guard": Guard.AUDIT.value}, actor)
    return changed


def _set_archived(project: Project, action: str, at: Any, actor: str) -> bool:
    with transaction.atomic():
        found = Project.objects.filter(pk=project.pk, archived_at__isnull=at is not None)
        changed = bool(found.update(archived_at=at))
        if changed:
            before, project.archived_at = project.archived_at, at
            team, slug = _audit_scope(project)
            values = ({"archived_at": before}, {"archived_at": at})
            audit(actor, f"project.{action}", slug, team=team, project=slug, before=values[0], after=values[1])
            workqueue.enqueue(targets.project(project.cluster_id, project.slug))
    return changed


def _change(row: Department | Team | Project, action: str, values: dict[str, Any], actor: str) -> bool:
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
            audit(actor, verb, row.slug, team=team, project=project, before=was, after=is_)
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
