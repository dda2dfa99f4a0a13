"""A claim that no node has room for does not reach the scheduler, which would try equal requests in every order."""

from datetime import timedelta
from typing import Any

import pytest

from allocations.domain.allocation_spec import AllocationRequest, Constraints
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed import Deadlines
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import claim_search
from allocations.requests import services
from portal.core import clock
from portal.tenants.models import Project, Team, User
from tests.support.claim_rows import h100_node, hold_devices

pytestmark = pytest.mark.django_db
DEADLINES = Deadlines(timedelta(seconds=120), timedelta(seconds=60))
FIVE_GPUS = tuple(f"gpu-{index}" for index in range(5))


@pytest.fixture
def member(team: Team, project: Project, member: User) -> User:
    h100_node(team, gpus=8)
    return member


def requested(member: User, offering: str, count: int, **constraints: bool) -> Allocation:
    asked = AllocationRequest("vision-train", offering, count, constraints=Constraints(**constraints))
    return services.request(member, asked)


def blocked(row: Allocation, *seen: ObservedObject) -> str:
    """Return why its claim is kept from the scheduler once it is admitted."""
    row = spec_of_row.rows().get(pk=row.pk)
    spec, view = spec_of_row.resolved_spec(row), Snapshot([admitted(row), *seen])
    state = hold.assess(spec, spec_of_row.intent(row), view, {}, clock.now(), DEADLINES)
    return claim_search.blocked(row, spec, view, state)


def admitted(row: Allocation) -> ObservedObject:
    condition = {"status": "True", "at": clock.now().isoformat()}
    facts = {"conditions": {"Admitted": condition}, "cluster_queue": "team-vision"}
    lease = Ref("Workload", row.project.namespace, f"{row.name}-lease")
    return ObservedObject(lease, "l", 7, allocation=row.name, facts=facts)


@pytest.mark.parametrize(
    ("offering", "count", "constraints", "is_blocked"),
    [
        ("h100/mig-1g.10gb", 21, {}, False),
        ("h100/mig-1g.10gb", 22, {}, True),
        ("h100/mig-1g.10gb", 7, {"same_gpu": True}, False),
        ("h100/mig-3g.40gb", 7, {}, True),
        ("h100/whole", 5, {}, True),
        ("h100/mig-1g.10gb", 5, {"distinct_gpus": True}, True),
        ("h100/mig-1g.10gb", 22, {"spread": True}, False),
    ],
)
def test_of_many_slices_on_one_node_the_claim_waits_until_that_has_room(
    member: User, offering: str, count: int, constraints: dict[str, Any], is_blocked: bool
) -> None:
    row = requested(member, offering, count, **constraints)
    assert blocked(row) == ""
    hold_devices(*FIVE_GPUS)
    assert bool(blocked(row)) == is_blocked


def test_few_slices_are_left_to_the_scheduler(member: User) -> None:
    row = requested(member, "h100/whole", claim_search.FEW)
    hold_devices(*FIVE_GPUS)
    assert blocked(row) == ""


def test_a_claim_that_is_there_stays_until_the_scheduler_finds_no_devices(member: User) -> None:
    row = requested(member, "h100/whole", 5)
    hold_devices(*FIVE_GPUS)
    claim = ObservedObject(Ref("ResourceClaim", row.project.namespace, row.name), "c", 8, allocation=row.name)
    name = Ref("Pod", row.project.namespace, f"{row.name}-holder")
    assert blocked(row, claim, ObservedObject(name, "h", 9, allocation=row.name)) == ""
    refused = ObservedObject(name, "h", 9, allocation=row.name, facts={"unschedulable": "cannot allocate all claims"})
    assert blocked(row, claim, refused) == claim_search.NO_DEVICES
