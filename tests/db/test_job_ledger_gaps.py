"""Queued Jobs in the ledger after a time without a watch, a restore, or before the inventory was read."""

from datetime import timedelta

import pytest

from allocations.capacity.snapshot import Capacity, CapacitySnapshot
from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations, reset_revisions
from portal.core import clock
from quotas.catalog.models import Offering, PoolUse
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.gpu_facts import plugin_node
from tests.support.job_observations import (
    BOUND,
    GPU,
    T0,
    at,
    charged_gpus,
    intervals,
    node_of,
    nodes,
    pod,
    seen,
    unused,
    workload,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(team, project):
    return fleet(team)


def test_pods_seen_before_their_workload_are_billed_from_when_the_cluster_says() -> None:
    record_observations(LOCAL, [seen(pod(), 2)])
    assert intervals() == []
    record_observations(LOCAL, [seen(workload(), 3)])
    assert intervals() == [(T0 - timedelta(minutes=1), None, True, False)]


def test_an_end_that_nobody_saw_is_the_last_sighting() -> None:
    record_list(LOCAL, KINDS["Workload"], [seen(workload(), 0)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0)], 12, at(5))
    record_list(LOCAL, KINDS["Pod"], [], 90, at(600))
    assert [(end, estimated) for _, end, _, estimated in intervals()] == [(at(5), True)]


def test_an_admission_that_nobody_watched_is_charged_from_when_the_cluster_says() -> None:
    """Two pods were bound since, the second a minute ago."""
    record_list(LOCAL, KINDS["Workload"], [], 1, at(-600))
    record_list(LOCAL, KINDS["Pod"], [], 1, at(-600))
    reserved = workload(pods=2, since="2026-11-02T11:55:00Z")
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    assert unused() == [(at(-300), at(-60), 4), (at(-60), None, 2)]
    assert intervals() == [(at(-60), None, True, False)]
    assert all(row.estimated_start for row in UsageInterval.objects.all())


def test_a_job_that_vanished_unseen_is_charged_until_the_last_sighting() -> None:
    reserved = workload(pods=2, since="2026-11-02T11:58:00Z")
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [], 90, at(600))
    record_list(LOCAL, KINDS["Workload"], [], 90, at(600))
    assert [charged_gpus(second) for second in (-90, -30, 0)] == [4, 4, 0]
    assert not UsageInterval.objects.filter(end=None).exists()


def test_a_job_admitted_anew_while_nobody_watched_owes_nothing_for_the_time_between() -> None:
    record_list(LOCAL, KINDS["Workload"], [seen(workload(since="2026-11-02T11:58:00Z"), 0, live=False)], 12, at(0))
    again = workload(since="2026-11-02T12:05:00Z", revision=40)
    record_list(LOCAL, KINDS["Workload"], [seen(again, 600, live=False)], 90, at(600))
    assert unused() == [(at(-120), at(0), 2), (at(300), None, 2)]


def test_a_job_that_a_backup_brought_back_is_charged_from_when_it_is_found() -> None:
    reserved, finished = workload(since="2026-11-02T11:58:00Z"), workload(admitted=False, revision=40)
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(finished, 60)])
    reset_revisions(LOCAL)
    with clock.frozen(at(3600)):
        record_list(LOCAL, KINDS["Workload"], [seen(reserved, 3600, live=False)], 20, at(3600))
    assert unused() == [(at(-120), at(60), 2), (at(3600), None, 2)]


def test_a_job_that_a_backup_brought_back_owes_nothing_of_before_though_its_pods_used_all_of_it() -> None:
    """They were bound in the second of its admission, and ended after its quota was released: nothing was ever
    unused.
    """
    reserved = workload(since=BOUND)
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(workload(revision=40), 60, gone=True), seen(pod(revision=41), 62, gone=True)])
    reset_revisions(LOCAL)
    with clock.frozen(at(3600)):
        record_list(LOCAL, KINDS["Workload"], [seen(reserved, 3600, live=False)], 20, at(3600))
    assert [charged_gpus(second) for second in (30, 62, 3599, 3600)] == [2, 0, 0, 2]


@pytest.mark.parametrize("order", [("Workload", "Pod"), ("Pod", "Workload")])
def test_pods_of_a_job_that_a_backup_brought_back_are_charged_for_what_they_use_and_counted_once(
    order: tuple[str, str],
) -> None:
    before = {"Workload": workload(since="2026-11-02T11:58:00Z"), "Pod": pod()}
    record_observations(LOCAL, nodes())
    for kind in order:
        record_list(LOCAL, KINDS[kind], [seen(before[kind], 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(pod(revision=40), 60, gone=True), seen(workload(revision=41), 60, gone=True)])
    reset_revisions(LOCAL)
    with clock.frozen(at(3600)):
        for kind in order:
            record_list(LOCAL, KINDS[kind], [seen(before[kind], 3600, live=False)], 20, at(3600))
        reconcile_inventory(LOCAL)
    assert intervals()[1:] == [(at(3600), None, True, False)]
    assert (unused()[1:], charged_gpus(3599), charged_gpus(3600)) == ([], 0, 2)
    assert CapacitySnapshot().capacity(Offering.objects.get(key="l40s/whole")) == Capacity(total=8, held=2, free=6)


def test_what_nobody_recorded_is_repaired_from_the_mirror() -> None:
    """As after an upgrade from a portal that charged pods only, or after a restore of the ledger."""
    record_observations(LOCAL, [*nodes(), seen(workload(pods=2, since="2026-11-02T11:58:00Z"), 0), seen(pod(), 2)])
    UsageInterval.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert unused() == [(at(-120), at(-60), 4), (at(-60), None, 2)]
    assert intervals() == [(at(-60), None, True, False)]
    MirrorObject.objects.exclude(kind="Node").delete()
    reconcile_inventory(LOCAL)
    assert not UsageInterval.objects.filter(end=None).exists()


def test_a_reservation_of_what_is_not_offered_yet_is_charged_once_it_is() -> None:
    record_observations(LOCAL, [*nodes(), seen(workload(flavor="t4", since="2026-11-02T11:58:00Z"), 0)])
    reconcile_inventory(LOCAL)
    assert unused() == []
    node = plugin_node("t4-0", "Tesla-T4", {GPU: 4}, "15360")
    record_observations(LOCAL, [seen(node_of(node), 30)])
    reconcile_inventory(LOCAL)
    reconcile_inventory(LOCAL)
    assert unused() == [(at(-120), None, 2)]


def test_a_pod_on_a_node_that_is_not_known_yet_is_billed_once_it_is() -> None:
    """A node joins, and its first pod is bound before the inventory has read the node."""
    record_observations(LOCAL, [*nodes(), seen(workload(), -90), seen(pod(node="l40s-2"), 2)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()) == ([], [(at(-90), None, 2)])
    record_observations(LOCAL, [seen(node_of(plugin_node("l40s-2")), 30)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()) == ([(at(-60), None, True, False)], [(at(-90), at(-60), 2)])
    assert PoolUse.objects.get(pool__key="l40s/gpu").foreign == 0
    record_observations(LOCAL, [seen(pod(node="l40s-2", phase="Succeeded", revision=40), 60)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()[-1]) == ([(at(-60), at(60), True, False)], (at(60), None, 2))
