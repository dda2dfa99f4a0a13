"""The check of use against leases, on the mirror: what it records, when it would act, and its number of queries."""

from datetime import timedelta
from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.client import Client
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, LeaseExcess, MirrorObject, WatchState
from allocations.reconcile import mirror
from allocations.reconcile.enforcement.lease_check import WATCHED, check_leases
from allocations.reconcile.metering import ledger
from allocations.reconcile.mirror import MirrorStale
from portal.core import clock
from portal.core.models import WorkItem
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


class NoCluster(Client):
    """A client that fails on every call: nothing may be ended on the mirror's evidence alone."""

    def __init__(self) -> None:
        self.cluster = LOCAL


@pytest.fixture(autouse=True)
def seen_now() -> None:
    for kind in WATCHED:
        WatchState.objects.create(cluster_id=LOCAL, kind=kind, resource_version=100, synced_at=clock.now())


def mirrored(kind: str, row: Allocation, name: str, **facts: Any) -> None:
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind=kind,
        namespace=row.project.namespace,
        name=name,
        uid=f"{kind}-{name}",
        resource_version=7,
        allocation=row.name,
        facts=facts,
        seen_at=clock.now(),
    )


def hold(team, project, name: str, pods: int) -> Allocation:
    """Create an allocation of one GPU with a reserved lease and an effective quota, and this many pods with a GPU
    each.
    """
    row = allocate(person(team), project, name=name)
    mirrored("Workload", row, f"{name}-lease", cluster_queue="team-vision", usage={"l40s": {GPU: 1}})
    mirrored("ResourceQuota", row, names.hold_slot(row.number), slices={name: {GPU: 1}}, shown=True)
    for number in range(pods):
        mirrored("Pod", row, f"{name}-{number}", node="l40s-0", phase="Running", gpus={GPU: 1})
    return row


def spread(team, project, *, holders: int, devices: int = 1) -> Allocation:
    """Create an allocation of two GPUs, a claim each, in the guard; ``holders`` of the two run."""
    row = allocate(person(team), project, "h100/whole", 2, name="train", constraints={"spread": True})
    mirrored("GpuProject", row, names.GUARD, allocations=[row.name])
    for number in range(2):
        claim = names.claim_of_slice(row.name, number)
        given = [{"pool": "h100-0", "device": f"gpu-{number}"}]
        mirrored("ResourceClaim", row, claim, devices=given[:devices])
        if number < holders:
            mirrored("Pod", row, names.holder(claim), node="h100-0", phase="Running", gpus={})
    return row


def charged(row: Allocation) -> Allocation:
    """Record the allocation in the ledger as the mirror shows it."""
    rows = list(spec_of_row.rows().filter(pk=row.pk))
    ledger.open_held(rows, mirror.of_allocations(LOCAL, row.project.namespace, rows), at=clock.now())
    return row


def marked(phase: Phase) -> list[str]:
    """Return the targets that a check enqueues while allocations are in ``phase``."""
    Allocation.objects.update(phase=phase)
    WorkItem.objects.all().delete()
    check_leases(NoCluster())
    return list(WorkItem.objects.values_list("target", flat=True))


def test_use_within_the_lease_is_noted_nowhere(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 1)
    check_leases(NoCluster())
    assert not LeaseExcess.objects.exists()


def test_a_sighting_is_noted_once_and_nothing_is_ended_before_the_mirror_has_moved_on(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 2)
    for _ in range(2):
        check_leases(NoCluster())
    (row,) = LeaseExcess.objects.all()
    assert row.message == "Allocation train uses 2 nvidia.com/gpu where 1 are reserved."
    assert (row.confirmed_at, row.actions, row.over_at) == (None, 0, None)


def test_the_api_server_is_asked_once_the_mirror_of_every_kind_has_moved_on(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 2)
    check_leases(NoCluster())
    WatchState.objects.exclude(kind="Pod").update(synced_at=clock.now() + timedelta(seconds=1))
    check_leases(NoCluster())
    WatchState.objects.update(synced_at=clock.now() + timedelta(seconds=1))
    with pytest.raises(AttributeError, match="NoCluster"):
        check_leases(NoCluster())


def test_what_is_over_before_it_was_confirmed_is_closed(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 2)
    check_leases(NoCluster())
    MirrorObject.objects.filter(name="train-1").delete()
    check_leases(NoCluster())
    assert LeaseExcess.objects.get().over_at is not None


def test_nothing_is_judged_by_a_mirror_that_nobody_keeps(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 2)
    WatchState.objects.update(synced_at=clock.now() - timedelta(minutes=5))
    with pytest.raises(MirrorStale):
        check_leases(NoCluster())
    assert not LeaseExcess.objects.exists()


def test_pods_of_namespaces_that_are_no_project_are_nobodys_business_here(team, project) -> None:
    fleet(team)
    hold(team, project, "train", 2)
    MirrorObject.objects.update(namespace="elsewhere")
    check_leases(NoCluster())
    assert not LeaseExcess.objects.exists()


@pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING])
def test_an_allocation_that_is_held_and_not_charged_is_looked_at(team, project, phase: Phase) -> None:
    fleet(team)
    row = hold(team, project, "train", 1)
    assert marked(phase) == [f"local/allocation:{row.pk}"]


def test_one_that_releases_while_its_claims_are_held_is_looked_at(team, project) -> None:
    fleet(team)
    row = spread(team, project, holders=2)
    MirrorObject.objects.filter(kind="GpuProject").update(facts={"allocations": []})
    assert marked(Phase.RELEASING) == [f"local/allocation:{row.pk}"]


def test_one_that_starts_again_while_the_guard_lets_pods_in_is_looked_at(team, project) -> None:
    fleet(team)
    row = spread(team, project, holders=1)
    assert marked(Phase.STARTING) == [f"local/allocation:{row.pk}"]


def test_one_that_starts_and_is_in_no_guard_is_not_charged_yet(team, project) -> None:
    fleet(team)
    spread(team, project, holders=1)
    MirrorObject.objects.filter(kind="GpuProject").delete()
    assert marked(Phase.STARTING) == []


def test_one_that_releases_and_has_nothing_left_is_not_looked_at(team, project) -> None:
    fleet(team)
    spread(team, project, holders=0, devices=0)
    assert marked(Phase.RELEASING) == []


def test_one_of_two_slices_that_is_charged_does_not_hide_the_other(team, project) -> None:
    fleet(team)
    row = charged(spread(team, project, holders=2))
    UsageInterval.objects.filter(slot__endswith="gpu-1").delete()
    assert marked(Phase.ACTIVE) == [f"local/allocation:{row.pk}"]


def test_what_is_charged_for_all_its_slices_is_not_looked_at(team, project) -> None:
    fleet(team)
    charged(spread(team, project, holders=2))
    charged(hold(team, project, "other", 1))
    assert marked(Phase.ACTIVE) == []


def test_it_takes_as_many_queries_for_one_allocation_as_for_ten(team, project) -> None:
    def grow() -> None:
        for n in range(9):
            hold(team, project, f"more-{n}", 1)

    fleet(team)
    hold(team, project, "first", 1)
    assert_constant(lambda: check_leases(NoCluster()), grow, at_most=15)
