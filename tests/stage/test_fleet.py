"""The simulated hardware in a real control plane: Kubernetes schedules on it, and it repairs itself."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from deploy.local.fleet import nodes, publisher, spec
from quotas.catalog.nvidia import DRA_DRIVER
from tests.support.cluster.hardware import (
    Read,
    claim,
    claiming_pod,
    devices,
    gpu_pod,
    job,
    pod,
    ready,
    results,
    running,
    unschedulable,
)

pytestmark = pytest.mark.cluster

WITHIN_S = 60.0
SWITCHED_ON = (
    "h200",
    "a100-static",
    "l40s-shares",
    "a10-dra",
    "a30-single",
    "a100-shared",
    "t4-plain",
    "l4-mps",
    "a40-vgpu",
)


def product(name: str) -> str:
    return f"device.attributes['gpu.nvidia.com'].productName == '{name}'"


def profile(name: str) -> str:
    return f"device.attributes['gpu.nvidia.com'].profile == '{name}'"


H100 = product("NVIDIA H100 80GB HBM3")


def eventually(read_value: Callable[[], Any], right: Callable[[Any], bool], within_s: float = WITHIN_S) -> Any:
    """Poll until `right`, and return what was read; fail with the last reading."""
    deadline = time.monotonic() + within_s
    while not right(value := read_value()):
        assert time.monotonic() < deadline, value
        time.sleep(0.2)
    return value


def test_every_node_of_the_fleet_is_ready_and_advertises_what_it_should(read):
    fleet = spec.load(spec.FLEET_FILE)
    observed = {item["metadata"]["name"]: item for item in read("nodes")["items"]}
    for kind in fleet.kinds:
        for name in kind.node_names():
            assert ready(observed[name])
            assert observed[name]["status"]["allocatable"] == nodes.node(fleet, kind, name)["status"]["allocatable"]
            assert nodes.TAINT in observed[name]["spec"]["taints"]


def test_pools_are_complete_and_of_one_generation(read):
    fleet = spec.load(spec.FLEET_FILE)
    _, pools = publisher.desired(fleet, {}, {})
    for name, specs in pools.items():
        published = eventually(partial(pool_of, read, name), is_of_one_generation)
        assert len(published) == len(specs)
        assert {item["pool"]["resourceSliceCount"] for item in published} == {len(specs)}


def pool_of(read: Read, name: str) -> list[dict[str, Any]]:
    """Return the specs of a pool's ResourceSlices."""
    return [item["spec"] for item in read("resourceslices")["items"] if item["spec"]["pool"]["name"] == name]


def is_of_one_generation(pool: list[dict[str, Any]]) -> bool:
    """Return whether the pool is complete: while a change is published, its slices are of two generations."""
    counts = {(one["pool"]["generation"], one["pool"]["resourceSliceCount"]) for one in pool}
    return len(counts) == 1 and len(pool) == counts.pop()[1]


def test_a_claim_gets_a_whole_h100_and_nothing_of_that_card_is_left(apply, read, namespace):
    apply(claim("whole", "gpu.nvidia.com", 1, H100), claiming_pod("whole"))
    landed = eventually(lambda: read("pod", "whole", "-n", namespace), running)
    [(node, device)] = devices(read("resourceclaim", "whole", "-n", namespace))
    assert landed["spec"]["nodeName"] == node
    assert node.startswith("h100-")

    card = read("resourceslice", f"{node}-{DRA_DRIVER}-{device}")["spec"]["devices"][0]
    parent = card["attributes"]["uuid"]["string"]
    on_that_card = f"device.attributes['gpu.nvidia.com'].parentUUID == '{parent}'"
    apply(claim("part", "mig.nvidia.com", 1, on_that_card), claiming_pod("part"))
    refused = eventually(lambda: read("pod", "part", "-n", namespace), lambda p: p["status"].get("conditions"))
    assert "cannot allocate all claims" in refused["status"]["conditions"][0]["message"]


def test_mig_devices_of_one_claim_never_overlap(apply, read, namespace):
    apply(claim("halves", "mig.nvidia.com", 4, H100, profile("3g.40gb")), claiming_pod("halves"))
    eventually(lambda: read("pod", "halves", "-n", namespace), running)
    got = devices(read("resourceclaim", "halves", "-n", namespace))
    assert len(got) == len(set(got)) == 4
    assert all("-mig-3g40gb-9-" in device for _, device in got)


def test_a_pod_with_one_gpu_runs_on_an_l40s_node(apply, read, namespace):
    selector = {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    apply(pod("l40s", {"limits": {"nvidia.com/gpu": "1"}}, nodeSelector=selector))
    landed = eventually(lambda: read("pod", "l40s", "-n", namespace), running)
    assert landed["spec"]["nodeName"].startswith("l40s-")


@pytest.mark.parametrize(("resource", "kind"), [("nvidia.com/mig-3g.40gb", "a100"), ("nvidia.com/gpu.shared", "t4")])
def test_slices_of_other_kinds_are_scheduled(apply, read, namespace, resource, kind):
    apply(pod(kind, {"limits": {resource: "1"}}))
    landed = eventually(lambda: read("pod", kind, "-n", namespace), running)
    assert landed["spec"]["nodeName"].startswith(kind)


def test_a_job_ends_as_its_annotations_say(apply, read, namespace):
    apply(job("well", run_for="1s"), job("badly", run_for="1s", exit_code="137"))
    eventually(lambda: read("job", "well", "-n", namespace)["status"], lambda s: s.get("succeeded") == 1)
    eventually(lambda: read("job", "badly", "-n", namespace)["status"], lambda s: s.get("failed") == 1)
    [failed] = read("pods", "-n", namespace, "-l", "job-name=badly")["items"]
    terminated = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "Error")


def test_a_node_goes_down_and_comes_up_with_the_same_resources(fleet, read):
    before = read("node", "l40s-1")["status"]["allocatable"]
    fleet("node", "down", "l40s-1")
    down = eventually(lambda: read("node", "l40s-1"), lambda node: not ready(node))
    assert down["status"]["allocatable"] == before
    fleet("node", "up", "l40s-1")
    up = eventually(lambda: read("node", "l40s-1"), ready)
    assert up["status"]["allocatable"] == before


def test_what_was_edited_or_deleted_is_published_again(kubectl, read):
    wrong = {"status": {"allocatable": {"nvidia.com/gpu.shared": "3", "nvidia.com/gpu": "4"}}}
    before = read("node", "t4-1")["status"]["allocatable"]
    kubectl("patch", "node", "t4-1", "--subresource=status", "--type=merge", f"--patch={json.dumps(wrong)}")
    kubectl("label", "node", "t4-1", "nvidia.com/gpu.product=wrong", "--overwrite")
    kubectl("taint", "node", "t4-1", "nvidia.com/gpu-")
    eventually(lambda: read("node", "t4-1")["status"]["allocatable"], lambda a: a == before)
    eventually(
        lambda: read("node", "t4-1"),
        lambda node: (
            node["metadata"]["labels"]["nvidia.com/gpu.product"] == "Tesla-T4"
            and nodes.TAINT in node["spec"].get("taints", [])
        ),
    )

    def pool() -> list[dict[str, Any]]:
        return pool_of(read, "h100-1")

    generation = eventually(pool, is_of_one_generation)[0]["pool"]["generation"]
    kubectl("delete", "resourceslice", f"h100-1-{DRA_DRIVER}-gpu-5")
    eventually(pool, lambda p: is_of_one_generation(p) and len(p) == 9 and p[0]["pool"]["generation"] > generation)


def test_a_tainted_card_is_not_handed_out_until_it_is_healed(fleet, apply, read, namespace):
    name = f"h100-1-{DRA_DRIVER}-gpu-7"
    parent = read("resourceslice", name)["spec"]["devices"][0]["attributes"]["uuid"]["string"]
    fleet("taint", "h100-1/gpu-7", "--xid", "79")
    try:
        tainted = eventually(
            lambda: read("resourceslice", name)["spec"]["devices"],
            lambda d: all("taints" in each for each in d),
        )
        [taint] = tainted[0]["taints"]
        assert (taint["key"], taint["value"], taint["effect"]) == ("gpu.nvidia.com/xid", "79", "NoSchedule")
        on_that_card = f"device.attributes['gpu.nvidia.com'].parentUUID == '{parent}'"
        apply(claim("sick", "mig.nvidia.com", 1, on_that_card), claiming_pod("sick"))
        eventually(lambda: read("pod", "sick", "-n", namespace), lambda p: p["status"].get("conditions"))
    finally:
        fleet("heal", "h100-1/gpu-7")
    eventually(lambda: read("pod", "sick", "-n", namespace), running)


def test_extra_nodes_come_and_go(fleet, read):
    extra = {"h100-2", "h100-3"}

    def ready_nodes() -> set[str]:
        return {item["metadata"]["name"] for item in read("nodes")["items"] if ready(item)}

    def pools() -> set[str]:
        return {item["spec"]["pool"]["name"] for item in read("resourceslices")["items"]}

    fleet("--extra", "h100=2")
    try:
        eventually(lambda: ready_nodes() & pools() & extra, lambda found: found == extra)
    finally:
        fleet("--extra", "h100=0")
    eventually(lambda: (ready_nodes() | pools()) & extra, lambda left: not left)


@pytest.fixture(scope="module")
def nodes_of(one_more) -> dict[str, str]:
    """Add one node of each kind that is off in the demo, by kind."""
    return one_more(*SWITCHED_ON)


@pytest.mark.parametrize(
    ("kind", "resource", "count"),
    [
        ("a30-single", "nvidia.com/gpu", 16),
        ("a100-shared", "nvidia.com/mig-1g.10gb.shared", 56),
        ("t4-plain", "nvidia.com/gpu", 16),
        ("l4-mps", "nvidia.com/gpu", 16),
        ("a40-vgpu", "nvidia.com/gpu", 2),
    ],
)
def test_a_node_switched_on_gives_out_what_its_device_plugin_advertises(
    apply, read, namespace, nodes_of, kind, resource, count
):
    node = nodes_of[kind]
    apply(gpu_pod(f"{kind}-all", resource, count, node))
    landed = eventually(lambda: read("pod", f"{kind}-all", "-n", namespace), running)
    assert landed["spec"]["nodeName"] == node
    apply(gpu_pod(f"{kind}-more", resource, 1, node))
    refused = eventually(lambda: read("pod", f"{kind}-more", "-n", namespace), unschedulable)
    assert f"Insufficient {resource}" in refused["status"]["conditions"][0]["message"]


def test_an_h200_is_cut_on_demand(apply, read, namespace, nodes_of):
    on_node = {"nodeSelector": {"kubernetes.io/hostname": nodes_of["h200"]}}
    apply(claim("h200", "mig.nvidia.com", 4, profile("1g.35gb")), claiming_pod("h200", **on_node))
    eventually(lambda: read("pod", "h200", "-n", namespace), running)
    got = devices(read("resourceclaim", "h200", "-n", namespace))
    assert got == [(nodes_of["h200"], f"gpu-0-mig-1g35gb-15-{start}") for start in (0, 2, 4, 6)]


def test_instances_cut_beforehand_are_handed_out_until_none_is_left(apply, read, namespace, nodes_of):
    node = nodes_of["a100-static"]
    on_node = {"nodeSelector": {"kubernetes.io/hostname": node}}
    apply(claim("static", "mig.nvidia.com", 8, profile("3g.40gb")), claiming_pod("static", **on_node))
    eventually(lambda: read("pod", "static", "-n", namespace), running)
    got = devices(read("resourceclaim", "static", "-n", namespace))
    assert sorted(got) == [(node, f"gpu-{minor}-mig-3g40gb-9-4") for minor in range(8)]
    apply(claim("ninth", "mig.nvidia.com", 1, profile("3g.40gb")), claiming_pod("ninth", **on_node))
    eventually(lambda: read("pod", "ninth", "-n", namespace), unschedulable)


def test_shares_of_a_card_are_counted_by_the_scheduler(apply, read, namespace, nodes_of):
    node = nodes_of["l40s-shares"]
    on_node = {"nodeSelector": {"kubernetes.io/hostname": node}}
    three = {"capacity": {"requests": {"shares": "3", "memory": "20Gi"}}}
    names = [f"share-{index}" for index in range(4)]
    for name in names:
        apply(claim(name, "gpu.nvidia.com", 1, **three), claiming_pod(name, **on_node))
    eventually(lambda: [read("pod", name, "-n", namespace) for name in names], lambda pods: all(map(running, pods)))
    got = [result for name in names for result in results(read("resourceclaim", name, "-n", namespace))]
    assert sorted(result["device"] for result in got) == [f"gpu-{minor}" for minor in range(4)]
    assert len({result["shareID"] for result in got}) == 4
    assert got[0]["consumedCapacity"] == {"shares": "3", "memory": "20Gi"}
    apply(claim("two", "gpu.nvidia.com", 1, capacity={"requests": {"shares": "2"}}), claiming_pod("two", **on_node))
    eventually(lambda: read("pod", "two", "-n", namespace), unschedulable)
    apply(claim("last", "gpu.nvidia.com", 1, capacity={"requests": {"shares": "1"}}), claiming_pod("last", **on_node))
    eventually(lambda: read("pod", "last", "-n", namespace), running)
    [beside] = results(read("resourceclaim", "last", "-n", namespace))
    assert (beside["pool"], beside["device"]) == (node, "gpu-0")
