"""Rows to the frozen Request that the pure parts read, and the record that a lease carries back to a row."""

import json
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from allocations.models import Allocation
from allocations.placing import CONSTRAINTS
from allocations.reconcile.facts import Request
from allocations.reconcile.wants import Deadlines, Intent
from allocations.rules import PRIORITIES
from allocations.shares_of_nodes import node_share


def rows() -> QuerySet[Allocation]:
    """Allocations with all that a Request needs, in one query."""
    return Allocation.objects.select_related("project__team__department", "offering__flavor", "requested_by")


def of(row: Allocation) -> Request:
    """The row as a Request; needs the relations of ``rows()``."""
    project, offering = row.project, row.offering
    return Request(
        id=str(row.id),
        name=row.name,
        project=project.slug,
        team=project.team.slug,
        department=project.team.department.slug,
        namespace=project.namespace,
        requested_by=row.requested_by.username,
        offering=offering.key,
        kind=offering.kind,
        flavor=offering.flavor.name,
        path=offering.flavor.path,
        count=row.count,
        spread=row.constraints.get("spread", False),
        priority=PRIORITIES[row.priority],
        requests=row.claim["built"]["units"] if row.claim else offering.requests,
        resource=offering.resource,
        device_class=offering.device_class,
        selectors=tuple(offering.selectors),
        node_selector=offering.flavor.node_selector,
        tolerations=tuple(offering.flavor.tolerations),
        created_at=row.created_at,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        record=record(row),
        profile=offering.profile,
        sharing=row.sharing,
        constraints=tuple(name for name in CONSTRAINTS if row.constraints.get(name)),
        capacity=offering.capacity,
        is_shared=offering.kind == "shared",
        cards=tuple(row.steer.get("cards", ())),
        clique=row.steer.get("clique", ""),
        claim=row.claim,
        number=row.number,
        node_share=node_share(row),
    )


def record(row: Allocation) -> str:
    """The whole request as JSON, for the lease: a lease whose row was lost becomes that row again."""
    return json.dumps(
        {
            "id": str(row.id),
            "name": row.name,
            "number": row.number,
            "project": row.project.slug,
            "offering": row.offering.key,
            "requested_by": row.requested_by.username,
            "mode": row.mode,
            "count": row.count,
            "constraints": row.constraints,
            "sharing": row.sharing,
            "claim": row.claim,
            "priority": row.priority,
            "purpose": row.purpose,
            "requeue": row.requeue,
            "created_at": row.created_at.isoformat(),
            "starts_at": row.starts_at.isoformat() if row.starts_at else None,
            "ends_at": row.ends_at.isoformat(),
        },
        sort_keys=True,
    )


def intent(row: Allocation) -> Intent:
    return Intent(
        released=row.desired == Allocation.Desired.RELEASED,
        not_before=row.not_before,
        asks_owner=row.asks_owner,
        phase=row.phase,
        phase_since=row.phase_since,
        reason=row.reason,
        message=row.message,
    )


def deadlines(row: Allocation) -> Deadlines:
    start = row.offering.flavor.start_deadline_s or settings.START_DEADLINE_S
    return Deadlines(start=timedelta(seconds=start), grace=timedelta(seconds=settings.GRACE_S))
