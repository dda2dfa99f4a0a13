"""Capacity and quota that queued Jobs leave to allocations."""

import pytest

from allocations.capacity.headroom import Availability
from allocations.capacity.snapshot import Capacity, CapacitySnapshot
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from portal.tenants.models import Team
from quotas.catalog.models import Offering
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.job_observations import nodes, pod, seen, workload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(team, project):
    return fleet(team)


def capacity() -> Capacity:
    return CapacitySnapshot().capacity(Offering.objects.get(key="l40s/whole"))


def test_gpus_of_a_job_are_counted_once_as_held() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(workload(), 0), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total, 2, before.free - 2)


def test_gpus_that_a_job_has_reserved_are_no_longer_free_before_its_pods_use_them() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(workload(pods=2), 0), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total, 4, before.free - 4)


def test_gpus_of_a_pod_that_nobody_queued_are_no_part_of_what_is_offered() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total - 2, 0, before.free - 2)


def test_a_jobs_use_of_the_teams_quota_leaves_less_to_get(team: Team) -> None:
    offering = Offering.objects.get(key="l40s/whole")
    before = Availability([team]).headroom(team, offering).can_get_now
    record_observations(LOCAL, [seen(workload(), 0)])
    assert Availability([team]).headroom(team, offering).can_get_now == before - 2
