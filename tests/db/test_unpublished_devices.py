"""What of a hold no node publishes any more is told, and hold and costs name the same UUID."""

from typing import Any

import pytest

from allocations.lifecycle.unpublished import REASON
from allocations.models import Allocation
from allocations.reconcile import allocation_state
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from allocations.requests import details
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole, Project, Team
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from tests.support import capacity_bodies as bodies
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate
from tests.support.observed import hold, hold_quota, quotas_listed, seen
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def of_team(team: Team, project: Project) -> Project:
    bodies.offered(bodies.node(), bodies.h100(), bodies.slices(2, [bodies.gpu(0), bodies.gpu(1)]))
    for pool in Pool.objects.all():
        limits.set_limit(SYSTEM, team, pool, 2)
    return project


@pytest.fixture
def named(of_team: Project) -> Allocation:
    """Create a hold of the device gpu-1."""
    row = allocate(person(of_team.team), of_team, "h100/whole")
    record_observations(LOCAL, hold(row))
    return row


@pytest.fixture
def counted(of_team: Project) -> Allocation:
    """Create a hold of two GPUs by device plugin."""
    row = allocate(person(of_team.team), of_team, "l40s/whole", 2)
    quotas_listed(1)
    record_observations(LOCAL, [seen(hold_quota(row, 10), 0)])
    Allocation.objects.filter(pk=row.pk).update(held_since=row.created_at)
    return row


def unpublished(row: Allocation) -> str:
    state = allocation_state.read(LOCAL, str(row.pk))
    assert state is not None
    return state.unpublished


def renumbered(uuid: str) -> dict[str, Any]:
    other = bodies.gpu(1)
    other["attributes"]["uuid"] = {"string": uuid}
    return bodies.slices(20, [bodies.gpu(0), other], generation=2)


def test_a_device_that_is_published_is_not_told(named: Allocation, counted: Allocation) -> None:
    assert (unpublished(named), unpublished(counted)) == ("", "")


@pytest.mark.parametrize(
    ("body", "gone"),
    [
        (bodies.slices(20, [bodies.gpu(0)], generation=2), False),
        (bodies.h100(20), True),
    ],
    ids=["device", "node"],
)
def test_a_device_that_is_gone_is_told_and_its_allocation_reconciled(
    named: Allocation, body: dict[str, Any], gone: bool
) -> None:
    WorkItem.objects.all().delete()
    bodies.watch(60, body, gone=gone)
    assert unpublished(named) == "gpu-1 of node h100-0"
    reconcile_inventory(LOCAL)
    assert WorkItem.objects.filter(target__contains=str(named.pk)).exists()


def test_while_a_pool_is_being_published_anew_nothing_is_told(named: Allocation) -> None:
    bodies.watch(60, bodies.slices(20, [bodies.gpu(0)], generation=2, count=2))
    assert unpublished(named) == ""


def test_a_count_that_no_node_publishes_any_more_is_told(counted: Allocation) -> None:
    bodies.watch(60, bodies.node(revision=20, capacity={"nvidia.com/gpu": 0}))
    reconcile_inventory(LOCAL)
    assert unpublished(counted) == "nvidia.com/gpu"
    assert WorkItem.objects.filter(target__contains=str(counted.pk)).exists()


def test_it_is_reconciled_once_until_it_is_published_again(named: Allocation) -> None:
    bodies.watch(60, bodies.slices(20, [bodies.gpu(0)], generation=2))
    Allocation.objects.filter(pk=named.pk).update(reason=REASON)
    WorkItem.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert not WorkItem.objects.filter(target__contains=str(named.pk)).exists()

    bodies.watch(120, bodies.slices(30, [bodies.gpu(0), bodies.gpu(1)], generation=3))
    reconcile_inventory(LOCAL)
    assert WorkItem.objects.filter(target__contains=str(named.pk)).exists()


def test_hold_and_costs_name_the_uuid_that_is_published_now(named: Allocation) -> None:
    bodies.watch(60, renumbered("GPU-9"))
    reconcile_inventory(LOCAL)
    (device,) = details.by_id([named])[named.pk].devices
    auditor = client(person(platform_role=PlatformRole.AUDITOR))
    (interval,) = auditor.get(f"/api/v1/costs/allocations/{named.pk}").json()["results"]
    assets = auditor.get("/api/v1/costs/assets?window=2026-11-02,2026-11-03").json()["results"]
    uuids = {one["name"]: one["uuid"] for one in assets}
    assert (device.uuid, interval["device_uuid"], uuids["gpu-1"]) == ("GPU-9", "GPU-9", "GPU-9")
