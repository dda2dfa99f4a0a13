"""The check of use against leases, over the mirror: what it notes, when it would act, and in how many queries."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.cluster.client import Client
from allocations.models import Allocation, LeaseExcess, MirrorObject, WatchState
from allocations.reconcile.enforcement.lease_check import WATCHED, check_leases
from allocations.reconcile.mirror import MirrorStale
from portal.core import clock
from portal.core.models import Due
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


class NoCluster(Client):
    """Whoever asks the API server fails: nothing may be ended by what the mirror alone says."""

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
    """An allocation of one GPU whose lease is reserved, and so many pods with a GPU each."""
    row = allocate(person(team), project, name=name)
    mirrored("Workload", row, f"{name}-lease", cluster_queue="team-vision", usage={"l40s": {GPU: 1}})
    for number in range(pods):
        mirrored("Pod", row, f"{name}-{number}", node="l40s-0", phase="Running", gpus={GPU: 1})
    return row


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


def test_an_allocation_that_is_held_and_not_charged_is_looked_at(team, project) -> None:
    fleet(team)
    row = hold(team, project, "train", 1)
    Allocation.objects.update(phase="active")
    Due.objects.all().delete()
    check_leases(NoCluster())
    assert list(Due.objects.values_list("target", flat=True)) == [f"local/allocation:{row.pk}"]


def test_it_takes_as_many_queries_for_one_allocation_as_for_ten(team, project) -> None:
    fleet(team)
    counts = []
    for names in (["first"], [f"more-{n}" for n in range(9)]):
        for name in names:
            hold(team, project, name, 1)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            check_leases(NoCluster())
        counts.append(len(queries))
    assert counts[0] == counts[1]
