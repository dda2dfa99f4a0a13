"""The simulated hardware in a real control plane: Kubernetes schedules on it, and it heals itself."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.fleet import nodes, publisher, slices, spec, state

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., str]
Command = Callable[..., None]
NAMESPACE = "fleet-test"
WITHIN_S = 30.0


def eventually(read: Callable[[], Any], right: Callable[[Any], bool], within_s: float = WITHIN_S) -> Any:
    """Poll until `right`, and return what was read; fail with the last reading."""
    deadline = time.monotonic() + within_s
    while not right(value := read()):
        assert time.monotonic() < deadline, value
        time.sleep(0.2)
    return value


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace that is no project of the portal, so only Kubernetes itself decides in it."""
    kubectl("create", "namespace", NAMESPACE)
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE)


@pytest.fixture
def apply(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Create objects of one test, and remove them after it."""
    files: list[str] = []

    def apply(*objects: dict[str, Any]) -> None:
        file = tmp_path / f"{len(files)}.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        files.append(str(file))
        kubectl("apply", "--namespace", namespace, "--filename", str(file))

    yield apply
    for file in reversed(files):
        kubectl("delete", "--namespace", namespace, "--filename", file)


@pytest.fixture
def fleet(kubeconfig: Path) -> Command:
    def fleet(*arguments: str) -> None:
        command = [sys.executable, "-m", "deploy.local.fleet", "--kubeconfig", str(kubeconfig), *arguments]
        subprocess.run(command, check=True, timeout=30)

    return fleet


@pytest.fixture
def read(kubectl: Kubectl) -> Callable[..., Any]:
    return lambda *arguments: json.loads(kubectl("get", *arguments, "--output", "json"))


def claim(name: str, device_class: str, count: int = 1, *selectors: str) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": device_class, "count": count}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "slice-0", "exactly": exactly}]}},
    }


def pod(name: str, resources: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [{"name": "main", "image": "pause:3.10", "resources": resources}],
            **fields,
        },
    }


def claiming_pod(name: str) -> dict[str, Any]:
    return pod(name, {"claims": [{"name": "gpu"}]}, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


def job(name: str, **annotations: str) -> dict[str, Any]:
    template = pod(name, {}, restartPolicy="Never")
    metadata = {"annotations": {f"gpu-portal.io/{key.replace('_', '-')}": v for key, v in annotations.items()}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": template["spec"]}},
    }


def running(observed: dict[str, Any]) -> bool:
    return bool(observed["status"]["phase"] == "Running")


def ready(observed: dict[str, Any]) -> bool:
    conditions = observed["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def devices(observed: dict[str, Any]) -> list[tuple[str, str]]:
    results = observed["status"].get("allocation", {}).get("devices", {}).get("results", [])
    return [(result["pool"], result["device"]) for result in results]


def test_every_node_of_the_fleet_is_ready_and_advertises_what_it_should(read):
    fleet = spec.load(spec.FLEET_FILE)
    observed = {item["metadata"]["name"]: item for item in read("nodes")["items"]}
    for kind in fleet.kinds:
        for name in kind.node_names():
            assert ready(observed[name])
            assert observed[name]["status"]["allocatable"] == nodes.allocatable(fleet, kind)
            assert nodes.TAINT in observed[name]["spec"]["taints"]


def test_pools_are_complete_and_of_one_generation(read):
    fleet = spec.load(spec.FLEET_FILE)
    _, pools = publisher.desired(fleet, state.State())
    observed = [item["spec"] for item in read("resourceslices")["items"]]
    for name, specs in pools.items():
        published = [item for item in observed if item["pool"]["name"] == name]
        assert len(published) == len(specs)
        assert {item["pool"]["resourceSliceCount"] for item in published} == {len(specs)}
        assert len({item["pool"]["generation"] for item in published}) == 1


def test_a_claim_gets_a_whole_h100_and_nothing_of_that_card_is_left(apply, read, namespace):
    apply(claim("whole", "gpu.nvidia.com"), claiming_pod("whole"))
    landed = eventually(lambda: read("pod", "whole", "-n", namespace), running)
    [(node, device)] = devices(read("resourceclaim", "whole", "-n", namespace))
    assert landed["spec"]["nodeName"] == node
    assert node.startswith("h100-")

    card = read("resourceslice", f"{node}-{slices.DRIVER}-{device}")["spec"]["devices"][0]
    parent = card["attributes"]["uuid"]["string"]
    on_that_card = f"device.attributes['gpu.nvidia.com'].parentUUID == '{parent}'"
    apply(claim("part", "mig.nvidia.com", 1, on_that_card), claiming_pod("part"))
    refused = eventually(lambda: read("pod", "part", "-n", namespace), lambda p: p["status"].get("conditions"))
    assert "cannot allocate all claims" in refused["status"]["conditions"][0]["message"]


def test_mig_devices_of_one_claim_never_overlap(apply, read, namespace):
    profile = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
    apply(claim("halves", "mig.nvidia.com", 4, profile), claiming_pod("halves"))
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
        return [s["spec"] for s in read("resourceslices")["items"] if s["spec"]["pool"]["name"] == "h100-1"]

    generation = pool()[0]["pool"]["generation"]
    kubectl("delete", "resourceslice", f"h100-1-{slices.DRIVER}-gpu-5")
    eventually(pool, lambda p: len(p) == 9 and {s["pool"]["generation"] for s in p} == {generation + 1})


def test_a_tainted_card_is_not_handed_out_until_it_is_healed(fleet, apply, read, namespace):
    name = f"h100-1-{slices.DRIVER}-gpu-7"
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
