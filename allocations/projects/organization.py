"""Write operations on departments, teams and projects, with permission.

Each function checks permission, then writes in one transaction, in which ``lock`` is called first.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from allocations.projects import adopt, transfer
from portal.core.locks import RowLock, unlocked
from portal.tenants import access, services, structure
from portal.tenants.models import Department, Project, Team, User

ACTION = "structure.manage"


def create_department(user: User, slug: str, name: str, parent: Department | None) -> Department:
    """A new department, within another if one is given. Raises Forbidden, Invalid, Refused for a name that is taken."""
    access.require(user, ACTION, None)
    return services.create_department(slug, name, parent=parent, actor=user.username)


def change_department(
    user: User, row: Department, changes: Mapping[str, Any], lock: RowLock[Department] = unlocked
) -> Department:
    """Rename the department or put it within another: ``name`` and ``parent``, where they are given."""
    access.require(user, ACTION, None)
    with transaction.atomic():
        row = lock(row)
        if "parent" in changes:
            transfer.move_department(user, row, changes["parent"])
        if "name" in changes:
            structure.rename(row, changes["name"], actor=user.username)
    return row


def create_team(user: User, department: Department, slug: str, name: str) -> Team:
    """A new team of the department. Raises Forbidden, Invalid, Refused for a name that is taken."""
    access.require(user, ACTION, None)
    return services.create_team(department, slug, name, actor=user.username)


def change_team(user: User, row: Team, changes: Mapping[str, Any], lock: RowLock[Team] = unlocked) -> Team:
    """Rename the team or move it to another department: ``name`` and ``department``, where they are given."""
    access.require(user, ACTION, row)
    with transaction.atomic():
        row = lock(row)
        if "department" in changes:
            transfer.move_team(user, row, changes["department"])
        if "name" in changes:
            structure.rename(row, changes["name"], actor=user.username)
    return row


def create_project(
    user: User, team: Team, slug: str, name: str, *, namespace: str = "", is_adopted: bool = False, **options: Any
) -> Project:
    """A new project, in a namespace of its own or, adopted, in one that is there already.

    ``options`` are those of `services.create_project`. Raises Forbidden, and what that and `adopt.adopt` raise.
    """
    access.require(user, ACTION, None)
    if is_adopted:
        return adopt.adopt(user, team, slug, name, namespace or slug, **options)
    return services.create_project(team, slug, name, namespace=namespace, actor=user.username, **options)


def change_project(
    user: User, row: Project, *, name: str | None = None, lock: RowLock[Project] = unlocked, **options: Any
) -> Project:
    """Rename the project, which leads may, or change what its namespace allows, which operators may.

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
