"""Two clusters with the same node names, namespaces and allocation names: nothing is attributed to the wrong one."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from allocations.capacity import device_inventory, flavor_devices
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.models import Allocation, LeaseExcess, MirrorObject, WatchEpoch, WatchState
from allocations.reconcile import mirror, watch_epoch
from allocations.reconcile.enforcement import lease_check
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.metering import unbilled
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, reset_revisions
from portal.core import clock
from portal.core.models import WorkItem
from quotas.catalog.models import Node
from quotas.metering.models import UsageInterval
from tests.support.claims import facts
from tests.support.clusters import LOCAL
from tests.support.observed import T0, at, claim, hold, holder, seen
from tests.support.queued import GPU
from tests.support.two_clusters import BOTH, FAR, NAMESPACE, Twin, due, mirrored, slots

pytestmark = pytest.mark.django_db


def test_one_object_is_mirrored_for_each_and_goes_for_one_alone(twins: dict[str, Twin]) -> None:
    for cluster, twin in twins.items():
        record_observations(cluster, [seen(holder(twin.row, 11), 0)])
    record_observations(FAR, [seen(holder(twins[FAR].row, 20), 5, gone=True)])
    pods = MirrorObject.objects.filter(kind="Pod", namespace=NAMESPACE, name=names.holder("train"))
    assert list(pods.values_list("cluster", flat=True)) == [LOCAL]
    views = {cluster: mirror.of_allocations(cluster, NAMESPACE, [twins[cluster].row]) for cluster in BOTH}
    assert {cluster: len(list(view)) for cluster, view in views.items()} == {LOCAL: 1, FAR: 0}


def test_a_list_of_one_tells_nothing_of_what_is_in_the_other(twins: dict[str, Twin]) -> None:
    record_list(LOCAL, KINDS["Pod"], [seen(holder(twins[LOCAL].row, 900), 0)], 900, at(0))
    record_list(FAR, KINDS["Pod"], [seen(holder(twins[FAR].row, 11), 0)], 12, at(60))  # by another etcd's revisions
    record_list(FAR, KINDS["Pod"], [], 13, at(120))
    assert list(MirrorObject.objects.filter(kind="Pod").values_list("cluster", flat=True)) == [LOCAL]


def test_each_has_watch_positions_of_its_own(twins: dict[str, Twin]) -> None:
    record_sync(LOCAL, (KINDS["Workload"], 900, clock.now()))
    record_sync(FAR, (KINDS["Workload"], 12, clock.now() - timedelta(minutes=5)))
    reset_revisions(FAR)
    positions = WatchState.objects.values_list("cluster", "resource_version")
    assert dict(positions) == {LOCAL: 900, FAR: 0}
    mirror.require_recent(LOCAL)
    with pytest.raises(mirror.MirrorStale):
        mirror.require_recent(FAR)


@pytest.fixture
def released_locks() -> Iterator[None]:
    """Release the watchers' locks afterwards: a session keeps them beyond its transaction."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")


@pytest.mark.usefixtures("released_locks")
def test_each_has_a_watcher_and_epochs_of_its_own(twins: dict[str, Twin]) -> None:
    epochs = [watch_epoch.begin(cluster) for cluster in (LOCAL, FAR, FAR)]
    assert epochs == [1, 1, 2]
    with watch_epoch.writing(LOCAL, 1), watch_epoch.writing(FAR, 2):
        assert WatchEpoch.objects.count() == 2
    with pytest.raises(watch_epoch.EpochOver), watch_epoch.writing(LOCAL, 2):
        pass


def test_the_same_device_is_held_in_both_and_each_hold_is_its_own_interval(twins: dict[str, Twin]) -> None:
    record_observations(FAR, hold(twins[FAR].row))
    assert slots() == {"far/h100-0/gpu-1"}
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}
    UsageInterval.objects.update(gpu_share_numerator=3, gpu_share_denominator=7)  # of a GPU that is cut there
    record_observations(LOCAL, hold(twins[LOCAL].row, revision=3))
    assert slots() == {"far/h100-0/gpu-1", "local/h100-0/gpu-1"}
    record_observations(FAR, [seen(claim(twins[FAR].row, 20, []), 30)])
    assert slots() == {"local/h100-0/gpu-1"}
    (interval,) = UsageInterval.objects.filter(end=None)
    assert (interval.cluster_id, interval.project, interval.flavor) == (LOCAL, "vision-train", "h100")
    assert interval.gpus == 1


def test_a_hold_takes_from_the_capacity_of_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    record_observations(FAR, hold(twins[FAR].row))
    offered = {cluster: twin.offering("h100/whole") for cluster, twin in twins.items()}
    assert {cluster: CapacitySnapshot().capacity(one).free for cluster, one in offered.items()} == {LOCAL: 4, FAR: 3}
    cards = flavor_devices.of_flavors([one.flavor for one in offered.values()])
    fits = {c: cards[one.flavor_id].total(flavor_devices.slice_shape(one)) for c, one in offered.items()}
    assert fits == {LOCAL: 4, FAR: 3}
    taken = {c: sorted(card.name for card in cards[one.flavor_id].gpus if card.allocated) for c, one in offered.items()}
    assert taken == {LOCAL: [], FAR: ["gpu-1"]}


def test_a_persons_claim_chooses_among_the_devices_of_its_own_cluster(twins: dict[str, Twin]) -> None:
    for number, published in enumerate(facts("h100", 1)):
        mirrored(FAR, "ResourceSlice", f"slice-{number}", **published)
    record_observations(FAR, hold(twins[FAR].row))
    fleets = {c: device_inventory.of_flavor(twin.offering("h100/whole").flavor).fleet for c, twin in twins.items()}
    assert {cluster: bool(fleet.devices) for cluster, fleet in fleets.items()} == {LOCAL: False, FAR: True}
    assert {cluster: len(fleet.shares_in_use) for cluster, fleet in fleets.items()} == {LOCAL: 0, FAR: 1}


def test_inventory_writes_the_nodes_of_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    reconcile_inventory(FAR)  # the mirror of which has no node
    present = Node.objects.filter(present=True).values_list("cluster", flat=True)
    assert set(present) == {LOCAL}
    assert not {target for target in due() if target.startswith("local/")}


def test_a_hold_that_is_not_charged_is_looked_at_in_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    record_observations(LOCAL, hold(twins[LOCAL].row))
    assert {cluster: unbilled.allocations(cluster) for cluster in BOTH} == {LOCAL: set(), FAR: set()}
    record_observations(FAR, hold(twins[FAR].row))
    UsageInterval.objects.filter(cluster=FAR).delete()
    WorkItem.objects.all().delete()
    for cluster in BOTH:
        unbilled.enqueue(cluster)
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}


def test_use_beyond_a_lease_is_noted_for_the_cluster_where_it_is(twins: dict[str, Twin]) -> None:
    for cluster, pods in ((LOCAL, 1), (FAR, 2)):
        usage = {twins[cluster].flavors["l40s"]: {GPU: 1}}
        mirrored(cluster, "Workload", "train-lease", allocation="train", cluster_queue="team-vision", usage=usage)
        Allocation.objects.filter(pk=twins[cluster].row.pk).update(offering=twins[cluster].offering("l40s/whole"))
        for number in range(pods):
            more: dict[str, Any] = {"node": "l40s-0", "phase": "Running", "gpus": {GPU: 1}}
            mirrored(cluster, "Pod", f"train-{number}", allocation="train", **more)
    assert lease_check.record_sightings(LOCAL, T0) == []
    lease_check.record_sightings(FAR, T0)
    lease_check.record_sightings(LOCAL, T0)  # which ends nothing of the other's
    noted = LeaseExcess.objects.filter(over_at=None).values_list("cluster", "holder")
    assert list(noted) == [(FAR, str(twins[FAR].row.pk))]
