"""Changes of the organization that limits, costs or the cluster have a say in; `portal.tenants` makes the others.

Each function checks permission, then writes in one transaction, in which ``lock`` is called first.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from allocations.capacity.recount import recount_departments
from allocations.projects import adopt
from portal.clusters import registry
from portal.core.errors import Refused
from portal.core.locks import RowLock, advisory_lock, unlocked
from portal.tenants import access, services, structure
from portal.tenants.actors import Actor
from portal.tenants.models import Department, Project, Team
from portal.tenants.project_options import ProjectOptions
from quotas.costs.models import SharedCost


def change_department(
    actor: Actor, row: Department, changes: Mapping[str, Any], lock: RowLock[Department] = unlocked
) -> Department:
    """Apply the ``name`` and ``parent`` in ``changes``; return the department. It moves with all below it, and the
    limits that the portal counts are recounted. Raises Forbidden, Invalid.
    """
    access.require(actor, structure.ACTION, None)
    with transaction.atomic():
        row = lock(row)
        if "parent" in changes:
            with advisory_lock("limits"):
                structure.set_parent(actor, row, changes["parent"])
                recount_departments()
        if "name" in changes:
            structure.rename(actor, row, changes["name"])
    return row


def change_team(actor: Actor, row: Team, changes: Mapping[str, Any], lock: RowLock[Team] = unlocked) -> Team:
    """Apply the ``name`` and ``department`` in ``changes``; return the team. After a move the limits that the portal
    counts are recounted. Raises Forbidden, Invalid.
    """
    access.require(actor, structure.ACTION, row)
    with transaction.atomic():
        row = lock(row)
        if "department" in changes:
            with advisory_lock("limits"):
                structure.move_team(actor, row, changes["department"])
                recount_departments()
        if "name" in changes:
            structure.rename(actor, row, changes["name"])
    return row


def delete_team(actor: Actor, row: Team) -> None:
    """Delete a team that was made by mistake: it never had a project or a quota. Raises Forbidden, Refused."""
    access.require(actor, structure.ACTION, row)
    if shared := list(SharedCost.objects.filter(teams__contains=[row.slug]).values_list("name", flat=True)):
        raise Refused(
            "wrong_phase",
            f"{row.slug} has a part of fixed costs: {', '.join(sorted(set(shared)))}.",
            "It stays, and can be renamed.",
        )
    structure.delete_team(actor, row)


def create_project(actor: Actor, team: Team, slug: str, name: str, options: ProjectOptions) -> Project:
    """Create a project, in a namespace that exists if it is adopted, and return it.

    Raises Forbidden, Invalid, Refused; ClusterUnavailable if a namespace is adopted.
    """
    access.require(actor, structure.ACTION, None)
    if options.adopt:
        adopt.require_permitted(options.cluster or registry.own(), options.namespace or slug)
    return services.create_project(actor, team, slug, name, options)
