"""Converts between rows and specs."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from allocations.capacity.node_shares import node_share
from allocations.domain import held_time
from allocations.domain.allocation_spec import AllocationSpec, LeaseRecord
from allocations.domain.device_affinity import DeviceAffinity
from allocations.domain.documents import fields_of
from allocations.domain.held_time import AllocationTime, HeldTime
from allocations.domain.objects import ResolvedSpec
from allocations.domain.observed import Deadlines, Intent
from allocations.models import Allocation
from portal.core.any_of import AnyOf
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Compiled, Rows, read_tables, relate
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering

COLUMNS = tuple(each.name for each in fields_of(AllocationSpec) if each.name not in ("project", "offering"))
DOCUMENTS = tuple((each.name, each.type) for each in fields_of(AllocationSpec) if hasattr(each.type, "from_json"))
"""Columns with JSON, and the class that each is read as; empty ones are the default."""


def rows() -> QuerySet[Allocation]:
    """Return the allocations with the relations that ``resolved_spec`` needs, in one query."""
    return Allocation.objects.select_related("project__team__department", "offering__flavor", "requested_by")


def with_relations(found: QuerySet[Allocation]) -> list[Allocation]:
    """Return the allocations with the relations of ``rows``, each of them read once and not with each allocation; two
    queries, for many allocations.
    """
    listed = list(found)
    if listed:
        set_relations(listed, *read_tables(*relations(listed)))
    return listed


def relations(listed: Collection[Allocation]) -> list[Compiled]:
    """Return what to read for ``set_relations``; there is at least one allocation."""
    return _RELATIONS.of(
        projects=list({row.project_id for row in listed}),
        offerings=list({row.offering_id for row in listed}),
        people=list({row.requested_by_id for row in listed}),
    )


def set_relations(
    listed: Collection[Allocation], projects: Iterable[Project], offerings: Iterable[Offering], people: Iterable[User]
) -> None:
    """Set the relations of the allocations, by what was read of ``relations``."""
    relate(listed, project=projects, offering=offerings, requested_by=people)


def _relations(projects: Collection[int], offerings: Collection[int], people: Collection[int]) -> list[Rows]:
    return [
        Rows(Project.objects.filter(AnyOf("id", projects)).select_related("team__department").order_by()),
        Rows(Offering.objects.filter(AnyOf("id", offerings)).select_related("flavor").order_by()),
        Rows(User.objects.filter(AnyOf("id", people)).order_by()),
    ]


_RELATIONS = QueryTemplate(_relations, projects=list[int], offerings=list[int], people=list[int])


def of_names(found: QuerySet[Allocation]) -> QuerySet[Allocation]:
    """Return one allocation of each project and name: the live one, else the one that ended last."""
    return found.order_by("project_id", "name", "-ended_at").distinct("project_id", "name")


def spec(row: Allocation) -> AllocationSpec:
    """Return the spec that was requested; needs the row's project and offering.

    Of asked hours the row has the end of the present hold, which is no part of the request.
    """
    columns = {name: getattr(row, name) for name in COLUMNS}
    if row.hours is not None:
        columns["ends_at"] = None
    for name, type_ in DOCUMENTS:
        if columns[name]:
            columns[name] = type_.from_json(columns[name])
        else:
            del columns[name]
    return AllocationSpec(**columns, project=row.project.slug, offering=row.offering.key)


def columns(requested: AllocationSpec) -> dict[str, Any]:
    """Return the columns of a row for a spec, all but its project and offering."""
    found = {name: getattr(requested, name) for name in COLUMNS}
    return {name: value.to_json() if hasattr(value, "to_json") else value for name, value in found.items()}


def resolved_spec(row: Allocation) -> ResolvedSpec:
    """Return the row as a ``ResolvedSpec``; needs the relations of ``rows()``."""
    project, offering, requested = row.project, row.offering, spec(row)
    built, affinity = requested.claim.built if requested.claim else None, DeviceAffinity.from_json(row.device_affinity)
    return ResolvedSpec(
        **vars(requested),
        id=str(row.id),
        team=project.team.slug,
        department=project.team.department.slug,
        namespace=project.namespace,
        kind=offering.kind,
        flavor=offering.flavor.name,
        path=offering.flavor.path,
        requests=built.units if built else offering.requests,
        resource=offering.resource,
        device_class=offering.device_class,
        selectors=tuple(offering.selectors),
        node_selector=offering.flavor.node_selector,
        tolerations=tuple(offering.flavor.tolerations),
        lease_record=record(row, requested),
        capacity=offering.capacity,
        gpu_uuids=affinity.gpu_uuids or (),
        clique=affinity.clique or "",
        number=row.number,
        node_share=node_share(row),
    )


def record(row: Allocation, requested: AllocationSpec) -> LeaseRecord:
    """Return the record that the row's lease has, from which the row can be created again."""
    return LeaseRecord(
        id=str(row.id),
        number=row.number,
        requested_by=row.requested_by.username,
        created_at=row.created_at,
        spec=requested,
        held_seconds=held_time.seconds(row.held_before),
        held_until=row.held_until,
    )


def time(row: Allocation) -> AllocationTime:
    """Return the time that was asked for, and what of it was held."""
    return AllocationTime(
        begins_at=row.starts_at or row.created_at,
        hours=row.hours,
        ends_at=None if row.hours is not None else row.ends_at,
        give_up_at=row.give_up_at,
        held=HeldTime(row.held_before, row.held_until, row.held_since),
    )


def intent(row: Allocation) -> Intent:
    """Return what people and deadlines decided about the row."""
    due = time(row).due
    return Intent(
        released=row.desired == Allocation.Desired.RELEASED,
        not_before=row.not_before,
        needs_attention=row.needs_attention,
        phase=row.phase,
        phase_since=row.phase_since,
        reason=row.reason,
        message=row.message,
        due_at=due.at if due else None,
    )


def deadlines(row: Allocation) -> Deadlines:
    """Return the start deadline of the row's flavor and the grace period of an eviction."""
    start = row.offering.flavor.start_deadline_s or settings.START_DEADLINE_S
    return Deadlines(start=timedelta(seconds=start), grace=timedelta(seconds=settings.GRACE_S))
