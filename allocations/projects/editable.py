"""Finds what a person may edit in the organization, for forms and for bodies that name a team or department.

Each function raises Forbidden, or NotVisible for what the person does not see. The write operations check again by
themselves: a role may end between a form and its submission.
"""

from typing import NamedTuple

from django.db.models import QuerySet

from portal.tenants import access
from portal.tenants.models import Department, Project, Team, User
from portal.tenants.project_options import SETTINGS
from portal.tenants.structure import ACTION

OF_LEADS = ("name",)
OF_OPERATORS = (*OF_LEADS, *SETTINGS)


class EditableProject(NamedTuple):
    """A project, and the names of its settings that a person may change."""

    row: Project
    settings: tuple[str, ...]


def may_manage(user: User) -> bool:
    """Return whether the person may change the organization, for what a page offers."""
    return access.can(user, ACTION, None)


def departments(user: User) -> QuerySet[Department]:
    """Return all departments, for who may change them."""
    access.require(user, ACTION, None)
    return Department.objects.all()


def teams(user: User) -> QuerySet[Team]:
    """Return all teams, for who may change them."""
    access.require(user, ACTION, None)
    return Team.objects.all()


def team(user: User, slug: str) -> Team:
    """Return the team, for who may change it."""
    row = access.team_for(user, slug)
    access.require(user, ACTION, row)
    return row


def project(user: User, slug: str) -> Project:
    """Return the project, for who may change how it is run."""
    row = access.project_for(user, slug)
    access.require(user, ACTION, row.team)
    return row


def project_settings(user: User, slug: str) -> EditableProject:
    """Return the project with the settings that the person may change: leads the name, operators all."""
    row = access.project_for(user, slug)
    access.require(user, "project.rename", row.team)
    return EditableProject(row, OF_OPERATORS if may_manage(user) else OF_LEADS)
