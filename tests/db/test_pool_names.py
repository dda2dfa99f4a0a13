"""A DeviceClass that loses its extended resource, with and without leases on its devices."""

import pytest

from allocations.models import WatchState
from allocations.reconcile import pool_names
from portal.clusters.models import Cluster
from portal.core import clock
from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.types import ClassFact
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.gpu_facts import dra_node, gpu, slices_of
from tests.support.people import person
from tests.support.queued import job

pytestmark = pytest.mark.django_db
BEFORE, AFTER = {"nvidia.com/gpu": 1}, {"gpu-portal.io/gpus": 1}


@pytest.fixture
def there(team) -> Cluster:
    """Create a fleet that was discovered while the class had an extended resource for its GPUs."""
    WatchState.objects.create(cluster_id=LOCAL, kind="DeviceClass", resource_version=1, synced_at=clock.now())
    return fleet(team)


def found() -> Discovered:
    classes = [ClassFact("gpu.nvidia.com")]
    return discover([dra_node()], [slices_of("h100-0", *(gpu(n) for n in range(4)))], classes=classes)


def counted(cluster: Cluster) -> tuple[list[dict], list[dict], str]:
    kept = pool_names.with_kept_names(cluster.slug, found())
    whole = [dict(one.requests) for one in kept.offerings if one.kind == "whole"]
    return [dict(pool.resources) for pool in kept.pools], whole, kept.nodes[0].problem


def test_nothing_stands_on_the_flavor_so_it_is_counted_by_the_new_name(there):
    assert counted(there) == ([AFTER], [AFTER], "")


def test_an_allocation_that_is_alive_keeps_the_name_under_which_kueue_counts_it(there, team, project):
    allocate(person(team), project, "h100/whole")
    pools, whole, problem = counted(there)
    assert (pools, whole) == ([BEFORE], [BEFORE])
    assert "h100/gpu becomes gpu-portal.io/gpus once nothing is held of h100" in problem


def test_an_admitted_job_keeps_the_name_and_one_that_waits_does_not(there, project):
    job("waiting", project.namespace)
    assert counted(there)[0] == [AFTER]
    job("admitted", project.namespace, cluster_queue="team-vision", usage={"h100": BEFORE})
    assert counted(there)[0] == [BEFORE]


def test_before_any_class_was_listed_nothing_is_concluded_from_there_being_none(there):
    WatchState.objects.all().delete()
    assert counted(there)[0] == [BEFORE]
