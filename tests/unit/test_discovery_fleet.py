"""The demo's catalog, discovered from what the simulated hardware publishes."""

from dataclasses import replace
from fractions import Fraction

import pytest

from deploy.local.fleet import nodes, slices, spec
from quotas.catalog import published
from quotas.catalog.discovery import DeviceFact, Discovered, NodeFact, SliceFact, discover
from quotas.catalog.mig_tables import TABLES
from tests.support.gpu_facts import problems

FLEET = spec.load(spec.FLEET_FILE)
UNIT = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}


def found_on(fleet: spec.Fleet) -> Discovered:
    return discover(node_facts(fleet), slice_facts(fleet))


def node_facts(fleet: spec.Fleet) -> list[NodeFact]:
    facts = []
    for kind in fleet.kinds:
        for name in kind.node_names():
            manifest = nodes.node(fleet, kind, name)
            gpus = {key: int(value) for key, value in manifest["status"]["capacity"].items() if "nvidia.com" in key}
            taints = tuple((taint["key"], taint["value"], taint["effect"]) for taint in manifest["spec"]["taints"])
            facts.append(NodeFact(name, manifest["metadata"]["labels"], gpus, gpus, taints))
    return facts


def slice_facts(fleet: spec.Fleet) -> list[SliceFact]:
    facts = []
    for kind in fleet.kinds:
        for name in kind.node_names() if kind.path == "dra" else ():
            pool = slices.pool(fleet, kind, name, {})
            for key, piece in pool.items():
                devices = tuple(device_fact(device) for device in piece.get("devices", []))
                facts.append(SliceFact(key, "gpu.nvidia.com", name, name, 1, len(pool), devices))
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
        shareable=device.get("allowMultipleAllocations", False),
    )


def test_the_demo_fleet_is_found_whole():
    found = found_on(FLEET)
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
        ("a100/mig-1g.10gb", "a100/mig-1g.10gb", "hardware", Fraction(2, 15), 16),
        ("a100/mig-2g.20gb", "a100/mig-2g.20gb", "hardware", Fraction(4, 15), 8),
        ("a100/mig-3g.40gb", "a100/mig-3g.40gb", "hardware", Fraction(7, 15), 8),
        ("h100/claim", "h100/slices", "full", Fraction(1), 1),
        ("h100/mig-1g.10gb", "h100/slices", "hardware", Fraction(1, 7), 56),
        ("h100/mig-1g.10gb+me", "h100/slices", "hardware", Fraction(1, 7), 8),
        ("h100/mig-1g.20gb", "h100/slices", "hardware", Fraction(1, 4), 32),
        ("h100/mig-2g.20gb", "h100/slices", "hardware", Fraction(2, 7), 24),
        ("h100/mig-3g.40gb", "h100/slices", "hardware", Fraction(1, 2), 16),
        ("h100/mig-4g.40gb", "h100/slices", "hardware", Fraction(4, 7), 8),
        ("h100/mig-7g.80gb", "h100/slices", "hardware", Fraction(1), 8),
        ("h100/whole", "h100/slices", "full", Fraction(1), 8),
        ("l40s/whole", "l40s/gpu", "full", Fraction(1), 4),
        ("t4/shared", "t4/gpu.shared", "none", Fraction(1, 4), 16),
    ]
    assert len(found.nodes) == 7
    assert len(found.devices) == 16
    assert all(device.healthy and device.uuid for device in found.devices)
    assert problems(found) == ()


# Kind of node → flavor, pool with units of one node, and each offering with sharing, replicas, share and MiB.
SWITCHED_ON = {
    "a30-single": ("a30", {"gpu": 16}, [("mig-1g.6gb", "", 1, Fraction(1, 4), 5836)]),
    "t4-plain": ("t4-time-slicing-4", {"gpu": 16}, [("shared", "time-slicing", 4, Fraction(1, 4), 15360)]),
    "l4-mps": ("l4", {"gpu": 16}, [("shared", "mps", 4, Fraction(1, 4), 23034)]),
    "a40-vgpu": ("a40-12q", {"gpu": 2}, [("whole", "vgpu", 1, Fraction(1), 12288)]),
    "a100-shared": (
        "a100-time-slicing-2",
        {"mig-1g.10gb.shared": 56},
        [("shared-1g.10gb", "time-slicing", 2, Fraction(1, 14), 9856)],
    ),
    "a100-static": (
        "a100-static-mig",
        {"mig-1g.10gb": 16, "mig-2g.20gb": 8, "mig-3g.40gb": 8},
        [
            ("mig-1g.10gb", "", 1, Fraction(1, 7), 9856),
            ("mig-2g.20gb", "", 1, Fraction(2, 7), 19968),
            ("mig-3g.40gb", "", 1, Fraction(1, 2), 40192),
        ],
    ),
    "a10-dra": ("a10", {"gpu": 4}, [("whole", "", 1, Fraction(1), 23028)]),
    "l40s-shares": (
        "l40s-consumable-shares-4",
        {"gpu-shares": 16},
        [("shared", "consumable-shares", 4, Fraction(1, 4), 46068)],
    ),
}


@pytest.mark.parametrize("kind", SWITCHED_ON)
def test_a_kind_that_is_switched_on_is_found(kind):
    flavor, pools, offerings = SWITCHED_ON[kind]
    found = found_on(FLEET.with_extra({kind: 1}))
    assert {p.key: p.total for p in found.pools if p.flavor == flavor} == {f"{flavor}/{k}": n for k, n in pools.items()}
    mine = [o for o in found.offerings if o.flavor == flavor and o.kind != "claim"]
    assert [(o.key, o.sharing, o.replicas, o.gpu_share, o.memory_mib) for o in mine] == [
        (f"{flavor}/{key}", *rest) for key, *rest in offerings
    ]
    assert problems(found) == ()


def test_a_driver_publishes_what_the_table_says():
    (flavor,) = [f for f in found_on(FLEET).flavors if f.name == "h100"]
    assert flavor.geometry is not None
    told = [
        (p.name, p.gi_id, p.compute, p.memory_mib, p.multiprocessors, p.starts, p.size, p.max_instances)
        for p in flavor.geometry.profiles
    ]
    table = TABLES["H100-80GB"].profiles
    assert sorted(told) == sorted(
        (p.name, p.gi_id, p.compute, p.memory_mib, p.multiprocessors, p.starts, p.size, p.max_instances) for p in table
    )


def test_a_geometry_is_kept_as_json():
    (flavor,) = [f for f in found_on(FLEET).flavors if f.name == "h100"]
    assert published.from_document(published.document(flavor.geometry)) == flavor.geometry
    assert published.document(None) == {}
    assert published.from_document({}) is None


def test_mig_devices_whose_counters_the_api_server_dropped_are_not_offered_beside_their_whole_gpus():
    slices_ = slice_facts(FLEET)
    without = [replace(one, devices=tuple(replace(each, counters={}) for each in one.devices)) for one in slices_]
    found = discover(node_facts(FLEET), without)
    assert {offering.key for offering in found.offerings if offering.flavor == "h100"} == {"h100/whole", "h100/claim"}
    assert "Turn the DRA driver's DynamicMIG off" in dict(problems(found))["h100-0"]


def test_what_the_driver_publishes_before_kubernetes_1_36_is_offered_whole():
    found = found_on(FLEET.on((1, 35)))
    assert {offering.key for offering in found.offerings if offering.flavor == "h100"} == {"h100/whole", "h100/claim"}
    assert "h100-0" not in dict(problems(found))
