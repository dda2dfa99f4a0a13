"""Write operations on departments, teams and projects, with permission.

Each function checks permission (`adopt.adopt` does it for an adopted namespace), then writes in one transaction, in
which ``lock`` is called first.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from allocations.projects import adopt, transfer
from portal.core.errors import Refused
from portal.core.locks import RowLock, unlocked
from portal.tenants import access, services, structure
from portal.tenants.models import Department, Project, Team, User
from quotas.costs.models import SharedCost

ACTION = "structure.manage"


def create_department(user: User, slug: str, name: str, parent: Department | None) -> Department:
    """Create a department, within ``parent`` if set, and return it. Raises Forbidden, Invalid, Refused (name taken)."""
    access.require(user, ACTION, None)
    return services.create_department(slug, name, parent=parent, actor=user.username)


def change_department(
    user: User, row: Department, changes: Mapping[str, Any], lock: RowLock[Department] = unlocked
) -> Department:
    """Apply the ``name`` and ``parent`` in ``changes``; return the department. Raises Forbidden, Invalid."""
    access.require(user, ACTION, None)
    with transaction.atomic():
        row = lock(row)
        if "parent" in changes:
            transfer.move_department(row, changes["parent"], actor=user.username)
        if "name" in changes:
            structure.rename(row, changes["name"], actor=user.username)
    return row


def create_team(user: User, department: Department, slug: str, name: str) -> Team:
    """Create a team in the department and return it. Raises Forbidden, Invalid, Refused (name taken)."""
    access.require(user, ACTION, None)
    return services.create_team(department, slug, name, actor=user.username)


def change_team(user: User, row: Team, changes: Mapping[str, Any], lock: RowLock[Team] = unlocked) -> Team:
    """Apply the ``name`` and ``department`` in ``changes``; return the team. Raises Forbidden."""
    access.require(user, ACTION, row)
    with transaction.atomic():
        row = lock(row)
        if "department" in changes:
            transfer.move_team(row, changes["department"], actor=user.username)
        if "name" in changes:
            structure.rename(row, changes["name"], actor=user.username)
    return row


def delete_team(user: User, row: Team) -> None:
    """Delete a team that was made by mistake: it never had a project or a quota. Raises Forbidden, Refused."""
    access.require(user, ACTION, row)
    if shared := list(SharedCost.objects.filter(teams__contains=[row.slug]).values_list("name", flat=True)):
        raise Refused(
            "wrong_phase",
            f"{row.slug} has a part of fixed costs: {', '.join(sorted(set(shared)))}.",
            "It stays, and can be renamed.",
        )
    structure.delete_team(row, actor=user.username)


def create_project(
    user: User, team: Team, slug: str, name: str, *, namespace: str = "", is_adopted: bool = False, **options: Any
) -> Project:
    """Create a project in a new namespace, or in an existing one if ``is_adopted``, and return it.

    ``options`` are those of `services.create_project`. Raises Forbidden, and what that and `adopt.adopt` raise.
    """
    if is_adopted:
        return adopt.adopt(user, team, slug, name, namespace or slug, **options)
    access.require(user, ACTION, None)
    return services.create_project(team, slug, name, namespace=namespace, actor=user.username, **options)


def change_project(
    user: User, row: Project, *, name: str | None = None, lock: RowLock[Project] = unlocked, **options: Any
) -> Project:
    """Rename the project (leads) or change the options of its namespace (operators); return it.

    ``options`` are those of `structure.configure_project`. Raises NotVisible, Forbidden, Invalid.
    """
    access.require(user, "project.rename", row.team)
    if options:
        access.require(user, ACTION, row.team)
    with transaction.atomic():
        row = lock(row)
        structure.configure_project(row, actor=user.username, **options)
        if name is not None:
            structure.rename(row, name, actor=user.username)
    return row
