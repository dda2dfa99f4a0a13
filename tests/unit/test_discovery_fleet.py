"""The demo's catalogue, found in what the simulated hardware publishes."""

from fractions import Fraction

from deploy.local.fleet import nodes, slices, spec
from quotas.catalog.discovery import DeviceFact, NodeFact, SliceFact, discover

FLEET = spec.load(spec.FLEET_FILE)
UNIT = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}


def node_facts() -> list[NodeFact]:
    facts = []
    for kind in FLEET.kinds:
        for number in range(kind.nodes):
            manifest = nodes.node(FLEET, kind, f"{kind.name}-{number}")
            gpus = {key: int(value) for key, value in manifest["status"]["capacity"].items() if "nvidia.com" in key}
            taints = tuple((taint["key"], taint["value"], taint["effect"]) for taint in manifest["spec"]["taints"])
            facts.append(NodeFact(manifest["metadata"]["name"], manifest["metadata"]["labels"], gpus, gpus, taints))
    return facts


def slice_facts() -> list[SliceFact]:
    facts = []
    for kind in FLEET.kinds:
        for number in range(kind.nodes if kind.path == "dra" else 0):
            name = f"{kind.name}-{number}"
            for key, published in slices.pool(FLEET, kind, name, {}).items():
                devices = tuple(device_fact(device) for device in published.get("devices", []))
                count = len(slices.pool(FLEET, kind, name, {}))
                facts.append(SliceFact(key, "gpu.nvidia.com", name, name, 1, count, devices))
    return facts


def device_fact(device: dict) -> DeviceFact:
    return DeviceFact(
        name=device["name"],
        attributes={name: next(iter(value.values())) for name, value in device["attributes"].items()},
        capacity={name: value["value"] for name, value in device["capacity"].items()},
        counters={
            used["counterSet"]: {name: value["value"] for name, value in used["counters"].items()}
            for used in device.get("consumesCounters", [])
        },
    )


def test_the_demo_fleet_is_found_whole():
    found = discover(node_facts(), slice_facts())
    assert [(flavor.name, flavor.identity.path, flavor.partitionable) for flavor in found.flavors] == [
        ("a100", "device-plugin", False),
        ("h100", "dra", True),
        ("l40s", "device-plugin", False),
        ("t4", "device-plugin", False),
    ]
    assert [(pool.key, pool.resources, pool.total) for pool in found.pools] == [
        ("a100/mig-1g.10gb", {"nvidia.com/mig-1g.10gb": 1}, 16),
        ("a100/mig-2g.20gb", {"nvidia.com/mig-2g.20gb": 1}, 8),
        ("a100/mig-3g.40gb", {"nvidia.com/mig-3g.40gb": 1}, 8),
        ("h100/slices", UNIT, 16),
        ("l40s/gpu", {"nvidia.com/gpu": 1}, 8),
        ("t4/gpu.shared", {"nvidia.com/gpu.shared": 1}, 32),
    ]
    assert [(o.key, o.pool, o.isolation, o.gpu_share, o.per_node) for o in found.offerings] == [
        ("a100/mig-1g.10gb", "a100/mig-1g.10gb", "hardware", Fraction(1, 7), 16),
        ("a100/mig-2g.20gb", "a100/mig-2g.20gb", "hardware", Fraction(2, 7), 8),
        ("a100/mig-3g.40gb", "a100/mig-3g.40gb", "hardware", Fraction(1, 2), 8),
        ("h100/whole", "h100/slices", "full", Fraction(1), 8),
        ("l40s/whole", "l40s/gpu", "full", Fraction(1), 4),
        ("t4/shared", "t4/gpu.shared", "none", Fraction(1, 4), 16),
    ]
    assert len(found.nodes) == 7
    assert len(found.devices) == 16
    assert all(device.healthy and device.uuid for device in found.devices)
    assert found.problems == ()
