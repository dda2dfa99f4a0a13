"""Requests allocations on the running portal and waits for their phases."""

from typing import Any

from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.tenants.models import Project, User
from quotas.metering.models import UsageInterval
from tests.support.cluster.waiting import eventually


def request_slices(user: User, project: Project, offering: str, count: int = 1, **fields: Any) -> Allocation:
    return services.request(
        user, AllocationRequest.from_json({"project": project.slug, "offering": offering, "count": count, **fields})
    )


def phase(row: Allocation) -> str:
    row.refresh_from_db()
    return row.phase


def reason(row: Allocation) -> str:
    row.refresh_from_db()
    return row.reason


def wait_for(row: Allocation, target: Phase, within_s: float = 60.0) -> Allocation:
    """Wait until the allocation is in the phase; the error shows its timeline."""
    try:
        eventually(lambda: phase(row) == target, within_s=within_s)
    except AssertionError as error:
        story = [f"{t.to_phase} {t.reason} {t.message}" for t in row.transitions.order_by("id")]
        raise AssertionError(f"{row.name} is {row.phase} ({row.reason}), not {target}: {story}") from error
    return row


def held(user: User, project: Project, offering: str, count: int = 1, **fields: Any) -> Allocation:
    return wait_for(request_slices(user, project, offering, count, **fields), Phase.ACTIVE)


def ended(user: User, row: Allocation) -> Allocation:
    services.release(user, row)
    return wait_for(row, Phase.ENDED)


def release_all(project: Project) -> None:
    rows = list(
        Allocation.objects.filter(project=project, ended_at=None).select_related("requested_by", "project__team")
    )
    for row in rows:
        services.release(row.requested_by, row)
    for row in rows:
        wait_for(row, Phase.ENDED)


def intervals(row: Allocation) -> list[UsageInterval]:
    return list(UsageInterval.objects.filter(holder_id=row.pk).order_by("start", "slot"))
