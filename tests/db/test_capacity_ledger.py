"""The capacity ledger: what nodes had and when, as the watcher sees it."""

from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.clusters.models import Cluster
from quotas.metering.models import CapacityInterval
from tests.support.capacity_bodies import (
    A100,
    BALANCED,
    H100,
    L40S,
    gpu,
    h100,
    history,
    mig,
    node,
    of,
    offered,
    slices,
    watch,
)
from tests.support.clusters import LOCAL, make_cluster
from tests.support.observed import at, seen

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster(db: None) -> Cluster:
    return Cluster.objects.get(slug=LOCAL)


def test_a_nodes_resource_has_an_interval_from_its_first_sighting():
    watch(0, node())
    assert history("nvidia.com/gpu") == [(at(0), None, 4, 4, "")]


def test_what_does_not_change_writes_nothing():
    watch(0, node())
    watch(60, node(revision=2))
    watch(90, node(revision=2))
    assert history("nvidia.com/gpu") == [(at(0), None, 4, 4, "")]


def test_unhealthy_units_are_not_available():
    watch(0, node())
    watch(60, node(revision=2, allocatable={"nvidia.com/gpu": 3}))
    assert history("nvidia.com/gpu") == [(at(0), at(60), 4, 4, ""), (at(60), None, 4, 3, "unhealthy")]


@pytest.mark.parametrize(("fields", "state"), [({"ready": False}, "node_not_ready"), ({"cordoned": True}, "cordoned")])
def test_nothing_of_a_node_that_takes_no_pods_is_available(fields: dict[str, Any], state: str):
    watch(0, node(), h100(), slices(1, [gpu(0)]))
    watch(60, node(revision=2, **fields), h100(2, **fields))
    assert history("nvidia.com/gpu")[1:] == [(at(60), None, 4, 0, state)]
    assert history("gpu-0")[1:] == [(at(60), None, 1, 0, state)]
    watch(90, h100(3))
    assert history("gpu-0")[2:] == [(at(90), None, 1, 1, "")]


def test_capacity_ends_when_its_node_is_deleted():
    watch(0, node())
    watch(60, node(revision=2), gone=True)
    assert history("nvidia.com/gpu") == [(at(0), at(60), 4, 4, "")]


def test_a_changed_layout_ends_one_interval_and_begins_others():
    watch(0, node("a100-0", capacity=BALANCED, labels=A100))
    watch(60, node("a100-0", 2, {"nvidia.com/gpu": 8}, labels=A100))
    assert history("nvidia.com/mig-1g.10gb") == [(at(0), at(60), 16, 16, "")]
    assert history("nvidia.com/gpu") == [(at(60), None, 8, 8, "")]


def test_changed_replicas_begin_a_new_interval():
    watch(0, node(labels={**L40S, "nvidia.com/gpu.replicas": "4"}))
    watch(60, node(revision=2, labels={**L40S, "nvidia.com/gpu.replicas": "2"}))
    assert [row[:2] for row in history("nvidia.com/gpu")] == [(at(0), at(60)), (at(60), None)]


def test_each_gpu_of_a_resource_slice_has_an_interval_of_its_own():
    watch(0, h100())
    watch(5, slices(1, [gpu(0), gpu(1, "NoSchedule")]))
    assert history("gpu-0") == [(at(5), None, 1, 1, "")]
    assert history("gpu-1") == [(at(5), None, 1, 0, "tainted")]
    assert of("gpu-0").uuid == "GPU-0"


@pytest.mark.parametrize("devices", [[gpu(0), mig(0, 0), mig(0, 4)], [mig(0, 0), mig(0, 4)]])
def test_mig_devices_belong_to_their_gpu(devices: list[dict[str, Any]]):
    watch(0, h100(), slices(1, devices))
    assert history("gpu-0") == [(at(0), None, 1, 1, "")]
    assert of("gpu-0").uuid == "GPU-0"
    assert CapacityInterval.objects.count() == 1


def test_another_layout_of_a_gpu_that_an_administrator_divides_begins_a_new_interval():
    watch(0, h100(), slices(1, [mig(0, 0), mig(0, 4)]))
    watch(60, slices(2, [mig(0, 0)]))
    assert history("gpu-0") == [(at(0), at(60), 1, 1, ""), (at(60), None, 1, 1, "")]
    assert of("gpu-0").labels["layout"] == [mig(0, 0)["name"]]


def test_a_gpu_that_is_no_longer_published_is_missing_until_it_is_back():
    watch(0, h100(), slices(1, [gpu(0), gpu(1)]))
    watch(60, slices(2, [gpu(0)]))
    watch(90, h100(2, ready=False))
    watch(95, h100(3))
    watch(99, slices(4, [gpu(0), gpu(1)]))
    assert history("gpu-1") == [
        (at(0), at(60), 1, 1, ""),
        (at(60), at(99), 1, 0, "missing"),
        (at(99), None, 1, 1, ""),
    ]


def test_a_pool_that_is_being_published_anew_changes_nothing():
    watch(0, h100(), slices(1, [gpu(0), gpu(1)]))
    watch(60, slices(2, [gpu(0)], generation=2, count=2))
    assert history("gpu-1") == [(at(0), None, 1, 1, "")]


def test_changes_that_a_list_shows_are_dated_at_the_last_complete_mirror_and_estimated():
    record_list(LOCAL, KINDS["Node"], [seen(node(), 0, live=False)], 1, at(0))
    record_list(LOCAL, KINDS["Node"], [seen(node(revision=2, ready=False), 60, live=False)], 2, at(60))
    record_list(LOCAL, KINDS["Node"], [], 3, at(90))
    assert history("nvidia.com/gpu") == [(at(0), at(0), 4, 4, ""), (at(0), at(60), 4, 0, "node_not_ready")]
    last = CapacityInterval.objects.get(end=at(60))
    assert (last.estimated_start, last.estimated_end) == (True, True)


def test_a_list_records_what_was_there_before_capacity_was_recorded():
    record_list(LOCAL, KINDS["Node"], [seen(node(), 0, live=False), seen(h100(), 0, live=False)], 1, at(0))
    record_list(LOCAL, KINDS["ResourceSlice"], [seen(slices(1, [gpu(0)]), 0, live=False)], 1, at(0))
    CapacityInterval.objects.all().delete()
    record_list(LOCAL, KINDS["ResourceSlice"], [seen(slices(1, [gpu(0)]), 60, live=False)], 2, at(60))
    assert history("nvidia.com/gpu") == [(at(0), None, 4, 4, "")]
    assert history("gpu-0") == [(at(0), None, 1, 1, "")]
    assert of("gpu-0").estimated_start


def test_changes_of_one_batch_are_recorded_each_at_its_time():
    watch(0, node())
    record_observations(LOCAL, [seen(node(revision=2, ready=False), 10), seen(node(revision=3), 40)])
    assert history("nvidia.com/gpu") == [
        (at(0), at(10), 4, 4, ""),
        (at(10), at(40), 4, 0, "node_not_ready"),
        (at(40), None, 4, 4, ""),
    ]


def test_a_node_deleted_and_made_anew_in_one_batch_was_gone_meanwhile():
    watch(0, node())
    record_observations(LOCAL, [seen(node(revision=2), 10, gone=True), seen(node(revision=3), 40)])
    assert history("nvidia.com/gpu") == [(at(0), at(10), 4, 4, ""), (at(40), None, 4, 4, "")]


def test_a_return_that_a_list_dates_before_the_last_end_begins_there():
    watch(0, h100(), slices(1, [gpu(0)]))
    watch(60, h100(3), gone=True)
    record_observations(LOCAL, [seen(h100(4), 50, live=False)])
    assert [row[:2] for row in history("gpu-0")] == [(at(0), at(60)), (at(60), None)]


def test_resources_are_missing_once_the_device_plugin_publishes_none():
    watch(0, node())
    watch(60, node(revision=2, capacity={"nvidia.com/gpu": 0}))
    assert history("nvidia.com/gpu")[1:] == [(at(60), None, 4, 0, "missing")]


def test_gpus_of_a_node_that_changes_to_the_device_plugin_are_not_missing():
    watch(0, h100(), slices(1, [gpu(0)]))
    watch(60, node("h100-0", 2, {"nvidia.com/gpu": 1}, labels=H100))
    watch(61, slices(2, [gpu(0)]), gone=True)
    assert history("gpu-0") == [(at(0), at(61), 1, 1, "")]


def test_seven_gpus_of_a_node_that_had_eight_are_seven():
    watch(0, node("a100-0", capacity={"nvidia.com/gpu": 7}, labels=A100))
    reconcile_inventory(LOCAL)
    value = of("nvidia.com/gpu").value
    assert value is not None
    assert value.gpus == 1


def test_a_gpu_that_has_got_another_number_is_not_missing():
    watch(0, h100(), slices(1, [gpu(0)]))
    watch(60, slices(2, [{**gpu(0), "name": "gpu-4"}]))
    assert [(row.name, row.uuid) for row in CapacityInterval.objects.filter(end=None)] == [("gpu-4", "GPU-0")]


@pytest.mark.parametrize(
    ("body", "recorded"),
    [
        (node(capacity={"nvidia.com/gpu": 10**30}), [(2**31 - 1, 2**31 - 1, "")]),
        (node(allocatable={"nvidia.com/gpu": -1}), [(4, 0, "unhealthy")]),
        (node(capacity={"nvidia.com/gpu": -1}), []),
        (node(capacity={"nvidia.com/mig-" + "a" * 300: 4}), []),
        (slices(1, [gpu(0), gpu(0)]), [(1, 1, "")]),
        (slices(1, [gpu(0)], count=0), [(1, 1, "")]),
        (slices(1, [{"name": "gpu-0", "attributes": {"type": {"strings": ["gpu"]}}}]), []),
        (slices(1, [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": {"int": 7}}}]), [(1, 1, "")]),
        (
            slices(1, [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": {"strings": ["x"] * 64}}}]),
            [(1, 1, "")],
        ),
    ],
    ids=[
        "more units than a number has room for",
        "less than nothing allocatable",
        "less than nothing",
        "a long name",
        "a device twice",
        "no number of slices",
        "a type that is a list",
        "a number as UUID",
        "a list as UUID",
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_whatever_a_node_publishes_can_be_recorded(body: dict[str, Any], recorded: list[Any], live: bool):
    record_observations(LOCAL, [seen(one, 0, live=live) for one in (h100(), body)])
    rows = CapacityInterval.objects.order_by("name")
    assert [(row.count, row.available, row.state) for row in rows] == recorded


def test_a_node_of_the_same_name_in_another_cluster_has_capacity_of_its_own():
    make_cluster("far")
    for cluster, second in ((LOCAL, 0), ("far", 5)):
        record_observations(cluster, [seen(node(), second)])
    record_observations("far", [seen(node(revision=2), 60, gone=True)])
    record_list(LOCAL, KINDS["Node"], [seen(node(), 90, live=False)], 2, at(90))
    rows = CapacityInterval.objects.order_by("start")
    assert [(row.cluster_id, row.start, row.end) for row in rows] == [(LOCAL, at(0), None), ("far", at(5), at(60))]


def test_a_node_that_changes_to_dra_has_its_gpus_once():
    offered(node("h100-0", 1, {"nvidia.com/gpu": 2}, labels=H100))
    watch(60, node("h100-0", 2, {"nvidia.com/gpu": 0}, labels=H100), slices(1, [gpu(0), gpu(1)]))
    reconcile_inventory(LOCAL)
    rows = CapacityInterval.objects.filter(end=None)
    assert sum(row.count * row.value.gpus for row in rows if row.value) == 2
