"""Allocations in the phases that pages show: requested by the service, then changed as the reconciler would."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.test import Client

from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.held_time import HeldTime
from allocations.domain.phases import Outcome, Phase
from allocations.lifecycle import spec_of_row, transitions
from allocations.models import Allocation, MirrorObject
from allocations.requests import services
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import Attribution
from tests.support.clusters import LOCAL

HTMX = {"HX-Request": "true"}
"""The header that htmx sends."""


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def requested(
    user: User, project: Project, offering: str = "l40s/whole", count: int = 1, **values: object
) -> Allocation:
    spec = AllocationRequest.from_json({"project": project.slug, "offering": offering, "count": count, **values})
    return services.request(user, spec)


def in_phase(row: Allocation, phase: Phase, reason: str = "", message: str = "", **changes: object) -> Allocation:
    """Put the row in ``phase`` as the reconciler does, with an event in the timeline."""
    Allocation.objects.filter(pk=row.pk).update(
        phase=phase.value, reason=reason, message=message, phase_since=clock.now(), **changes
    )
    evidence = {"kind": "Workload", "name": f"{row.name}-lease", "resource_version": "4711"}
    transitions.append(
        row, "phase", actor="portal", to_phase=phase.value, reason=reason, message=message, evidence=evidence
    )
    row.refresh_from_db()
    return row


def held(row: Allocation, devices: Sequence[tuple[str, str, str]] = (), hours: float = 0) -> Allocation:
    """Make it held for this many hours: on each (node, device, uuid), or as a count if Kubernetes names no device."""
    offering, project = row.offering, row.project
    since = clock.now() - timedelta(hours=hours)
    for node, device, uuid in devices or [("", "", "")]:
        metering.open_interval(
            uuid4(),
            row.pk,
            f"{node}/{device}" if device else f"{row.pk}/{offering.flavor.name}",
            since,
            Attribution(
                offering=offering.key,
                flavor=offering.flavor.name,
                kind=offering.kind,
                gpu_share=offering.gpu_share,
                cluster="local",
                department=project.team.department.slug,
                team=project.team.slug,
                project=project.slug,
                member=row.requested_by.username,
                namespace=project.namespace,
                node=node,
                device_uuid=uuid,
            ),
            1 if devices else row.count,
            {"kind": "test"},
        )
    end = replace(spec_of_row.time(row), held=HeldTime(since=since)).end
    return in_phase(row, Phase.ACTIVE, "held", "Your GPUs are ready.", held_at=since, held_since=since, ends_at=end)


def ended(row: Allocation, outcome: Outcome = Outcome.RELEASED, message: str = "Released by ada.") -> Allocation:
    now = clock.now()
    for interval in UsageInterval.objects.filter(holder_id=row.pk, end=None):
        metering.close_interval(interval.key, now, {"kind": "test"})
    return in_phase(
        row,
        Phase.ENDED,
        outcome.value,
        message,
        desired=Allocation.Desired.RELEASED,
        ending="person",
        ended_at=now,
        outcome=outcome.value,
    )


def pod(project: Project, row: Allocation, name: str, **facts: object) -> None:
    """Let the mirror show a pod that uses the allocation."""
    defaults = {"phase": "Running", "node": "l40s-0", "gpus": {}, "cpu_millicores": 100, "memory_mib": 256}
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="Pod",
        namespace=project.namespace,
        name=name,
        uid=name,
        resource_version=1,
        allocation=row.name,
        facts=defaults | facts,
        seen_at=clock.now(),
    )


def without_tokens(response: Any) -> str:
    """Return a page without what differs each time it is made: the tokens of its forms."""
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", text(response))
