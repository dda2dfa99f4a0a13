"""Reads allocations, and what follows from their rows alone."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal
from uuid import UUID

from django.db.models import QuerySet

from allocations.domain import held_time
from allocations.domain.allocation_spec import Sharing
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation
from allocations.domain.objects import Ref
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes.registry import mode_of
from allocations.models import Allocation, AppliedObject, Transition
from allocations.requests import advice, isolation
from portal.core.errors import NotVisible
from portal.core.reading import row_version
from portal.tenants import access
from portal.tenants.models import User
from portal.workqueue import targets


def visible(user: User) -> QuerySet[Allocation]:
    """Return all allocations that the person may see, including ended ones, newest first, with their relations."""
    rows = spec_of_row.rows().select_related("offering__pool").order_by("-created_at", "-id")
    return _visible(user, rows)


def listed(user: User) -> QuerySet[Allocation]:
    """Return what ``visible`` returns, with the version of each row, and without the relations, which ``details.read``
    reads once for all rows.
    """
    rows = Allocation.objects.annotate(row_version=row_version(Allocation)).order_by("-created_at", "-id")
    return _visible(user, rows)


def version_of(row: Any) -> str:
    """Return the version of a row of ``listed``."""
    return str(row.row_version)


def _visible(user: User, rows: QuerySet[Allocation]) -> QuerySet[Allocation]:
    return rows if access.sees_all(user) else rows.filter(project__in=access.visible_projects(user))


def get(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation. Raises NotVisible."""
    try:
        found = visible(user).filter(pk=UUID(str(id_))).first()
    except ValueError:
        found = None
    if found is None:
        raise NotVisible("The allocation", hint="GET /allocations lists yours.")
    return found


def with_ids(rows: QuerySet[Allocation], ids: Iterable[str]) -> QuerySet[Allocation]:
    """Return those of the rows that have one of the ids; a text that is no id is nobody's."""
    found = []
    for id_ in ids:
        with suppress(ValueError):
            found.append(UUID(id_))
    return rows.filter(pk__in=found)


def releasable(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation, for who may release it. Raises NotVisible, Forbidden."""
    row = get(user, id_)
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    return row


def extendable(user: User, id_: UUID | str) -> Allocation:
    """Return the allocation, for who may extend it. Raises NotVisible, Forbidden."""
    row = get(user, id_)
    access.require(user, "allocation.extend", row.project.team, row.requested_by)
    return row


def isolation_of(row: Allocation) -> Isolation:
    """Return the isolation of the allocation from others on its GPUs, and of its own pods."""
    return isolation.request_isolation(row.offering, Sharing.from_json(row.sharing), CustomClaim.of_column(row.claim))


def warnings(row: Allocation, found: Isolation) -> list[advice.ChoiceWarning]:
    """Return the warnings that the preview of the request had; ``found`` is the row's isolation."""
    hours = held_time.hours(spec_of_row.time(row).span)
    return advice.warnings(row.offering.key, *found, row.count, hours, row.purpose)


def reservation(row: Allocation) -> Literal["device", "count"]:
    """Return what the hold reserves: its devices (``device``), or a count on the flavor (``count``)."""
    return "device" if CAPABILITIES[row.offering.flavor.path].names_devices else "count"


def timeline(row: Allocation) -> QuerySet[Transition]:
    """Return all transitions of the allocation, oldest first."""
    return row.transitions.order_by("id")


def manifests(row: Allocation) -> list[tuple[dict[str, object], bool]]:
    """Return the objects that the allocation has or will have in the cluster, each with whether it is applied."""
    spec = spec_of_row.resolved_spec(row)
    target = targets.allocation(row.project.cluster_id, row.pk)
    applied = set(AppliedObject.objects.filter(target=target).values_list("kind", "namespace", "name"))
    return [(found, tuple(Ref.of_manifest(found)) in applied) for found in mode_of(spec).manifests(spec)]
