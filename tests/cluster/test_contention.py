"""Concurrent requests under one member's limit: the database grants as many as it allows, and Kueue never has
more.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.core.errors import Busy, Refused, Retryable
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.cluster.allocations import phase, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
OFFERING, LIMIT, CLIENTS, TRIES = "t4/shared", 5, 8, 4


@pytest.fixture
def limit(vision: Team, member: User) -> Iterator[Limit]:
    offering = Offering.objects.select_related("pool", "flavor").get(key=OFFERING)
    row = limits.set_limit(SYSTEM, vision.memberships.get(user=member), offering, LIMIT)
    yield row
    limits.remove_limit(SYSTEM, row)


def test_no_more_is_granted_than_the_member_may_hold_by_the_database_and_by_kueue(
    limit: Limit, project: Project, member: User, admin: ApiClient
) -> None:
    def send_request(_: int) -> list[Allocation]:
        granted = []
        try:
            for _ in range(TRIES):
                try:
                    granted.append(services.request(member, AllocationRequest(project.slug, OFFERING)))
                except Refused as error:
                    assert error.violations[0].dimension == f"member:{OFFERING}"
                except (Busy, Retryable):
                    continue
        finally:
            connection.close()
        return granted

    with ThreadPoolExecutor(CLIENTS) as clients:
        asking = [clients.submit(send_request, number) for number in range(CLIENTS)]
        max_granted = max(
            [reserved(admin, project) for _ in iter(lambda: all(a.done() for a in asking), True)], default=0
        )
        granted = [row for a in asking for row in a.result()]
    assert len(granted) == LIMIT
    assert max_granted <= LIMIT
    for row in granted:
        wait_for(row, Phase.ACTIVE)
    assert reserved(admin, project) == LIMIT
    services.release(member, granted[0])
    eventually(lambda: phase(granted[0]) == Phase.ENDED)
    assert services.request(member, AllocationRequest(project.slug, OFFERING)).pk


def reserved(admin: ApiClient, project: Project) -> int:
    """Return the slices that Kueue has reserved for leases of the project."""
    leases = admin.objects("workloads", project.namespace)
    admissions = [one["status"]["admission"] for one in leases if one.get("status", {}).get("admission")]
    return sum(int(a["podSetAssignments"][0]["resourceUsage"]["nvidia.com/gpu.shared"]) for a in admissions)
