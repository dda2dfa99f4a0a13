"""Use beyond leases in the mirror, and whose leases these are, also after a restore of the database."""

from datetime import UTC, datetime
from typing import Any

import pytest

from allocations.cluster import names
from allocations.domain.objects import Snapshot
from allocations.lifecycle.lease_excess import DEVICES
from allocations.models import Allocation, LeaseExcess, MirrorObject
from allocations.reconcile.enforcement.holds import holds
from allocations.reconcile.enforcement.lease_check import record_sightings
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def member(team: Team, project: Project) -> User:
    fleet(team)
    return person(team)


def seen(kind: str, name: str, project: Project, allocation: str, **facts: Any) -> None:
    where = {"namespace": project.namespace, "allocation": allocation, "resource_version": 1, "seen_at": NOW}
    MirrorObject.objects.create(cluster_id=LOCAL, kind=kind, name=name, uid=f"u-{name}", facts=facts, **where)


def held(project: Project, allocation: str) -> None:
    """Create a lease of one GPU, two pods with a GPU each, and a claim with a device."""
    reserved = {"cluster_queue": "vision", "usage": {"l40s": {GPU: 1}}, "conditions": {}}
    seen("Workload", names.lease(allocation), project, allocation, **reserved)
    for name in "ab":
        seen("Pod", f"{allocation}-{name}", project, allocation, node="l40s-0", phase="Running", gpus={GPU: 1})
    seen("ResourceClaim", allocation, project, allocation, devices=[{"pool": "h100-0", "device": "gpu-0"}])


def found() -> set[tuple[str, str, int, int]]:
    record_sightings(LOCAL, NOW)
    return set(LeaseExcess.objects.values_list("holder_kind", "resource", "used", "reserved"))


def test_what_a_lease_without_a_row_reserves_is_no_excess_and_more_is(project: Project) -> None:
    """As after a restore of the database, also for a person for whom no row can be created again."""
    held(project, "lost")
    assert found() == {("allocation", GPU, 2, 1)}


def test_the_lease_of_an_allocation_that_has_ended_gives_it_nothing(project: Project, member: User) -> None:
    row = allocate(member, project)
    over = {"desired": "released", "ending": "released", "outcome": "released"}
    Allocation.objects.filter(pk=row.pk).update(ended_at=NOW, phase="ended", **over)
    held(project, row.name)
    assert found() == {("pod", GPU, 1, 0), ("claim", DEVICES, 1, 0)}


def test_looking_at_one_namespace_asks_nothing_of_the_holds_of_others(
    team: Team, project: Project, member: User
) -> None:
    def ask() -> None:
        assert holds(LOCAL, Snapshot(), project__namespace=project.namespace) == []

    def grow() -> None:
        other = tenants.create_project(SYSTEM, team, "vision-test", "Another")
        for _ in range(3):
            allocate(member, other)
        Allocation.objects.update(held_at=NOW)

    assert_constant(ask, grow, at_most=5)
