"""What the simulated DRA driver publishes about a node with dynamic MIG."""

import re
from collections import Counter
from itertools import combinations

import pytest

from deploy.local.fleet import slices, spec
from deploy.local.fleet.fixed_devices import placed
from deploy.local.fleet.slots import slots
from quotas.catalog.layouts import layouts
from quotas.catalog.mig_tables import TABLES
from tests.support.mig_layouts import is_valid

FLEET = spec.load(spec.FLEET_FILE)
H100 = next(kind for kind in FLEET.kinds if kind.name == "h100")
POOL = slices.pool(FLEET, H100, "h100-0", {})
CARD = POOL["h100-0-gpu.nvidia.com-gpu-0"]["devices"]
DEVICES = {device["name"]: device for device in CARD}

COMMON = {
    "productName": {"string": "NVIDIA H100 80GB HBM3"},
    "brand": {"string": "Nvidia"},
    "architecture": {"string": "Hopper"},
    "cudaComputeCapability": {"version": "9.0.0"},
    "driverVersion": {"version": "580.126.20"},
    "cudaDriverVersion": {"version": "13.0.0"},
    "resource.kubernetes.io/pciBusID": {"string": "0000:15:00.0"},
    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:10"},
    "resource.kubernetes.io/numaNode": {"int": 0},
}
WHOLE_UUID = slots(H100, "h100-0")[0].uuid
ALL_COUNTERS = {
    "copy-engines": {"value": "8"},
    "decoders": {"value": "7"},
    "encoders": {"value": "0"},
    "jpeg-engines": {"value": "7"},
    "memory": {"value": "81152Mi"},
    "multiprocessors": {"value": "132"},
    "ofa-engines": {"value": "1"},
} | {f"memory-slice-{index}": {"value": "1"} for index in range(8)}


def amount(value: str) -> int:
    return int(value.removesuffix("Mi"))


def demand(names: tuple[str, ...]) -> Counter[str]:
    """Return what a set of devices of one GPU consumes of the GPU's counters."""
    total: Counter[str] = Counter()
    for name in names:
        (consumption,) = DEVICES[name]["consumesCounters"]
        total.update({counter: amount(q["value"]) for counter, q in consumption["counters"].items()})
    return total


def fits(*names: str) -> bool:
    return all(amount(ALL_COUNTERS[counter]["value"]) >= wanted for counter, wanted in demand(names).items())


def placement(name: str) -> set[int]:
    """Return the memory slices of a device, from the geometry table and not from the counters."""
    if name == "gpu-0":
        return set(range(8))
    profile_id, start = map(int, name.rsplit("-", 2)[1:])
    size = next(p.size for p in TABLES["H100-80GB"].profiles if p.gi_id == profile_id)
    return set(range(start, start + size))


def test_counter_slice_comes_before_one_slice_per_card():
    assert list(POOL) == [
        "h100-0-gpu.nvidia.com-counters",
        *(f"h100-0-gpu.nvidia.com-gpu-{minor}" for minor in range(8)),
    ]
    assert POOL["h100-0-gpu.nvidia.com-counters"] == {
        "driver": "gpu.nvidia.com",
        "nodeName": "h100-0",
        "pool": {"name": "h100-0", "resourceSliceCount": 9},
        "sharedCounters": [{"name": f"gpu-{minor}-counter-set", "counters": ALL_COUNTERS} for minor in range(8)],
    }


def test_whole_card_takes_everything():
    assert DEVICES["gpu-0"] == {
        "name": "gpu-0",
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": WHOLE_UUID}} | COMMON,
        "capacity": {
            "copyEngines": {"value": "8"},
            "decoders": {"value": "7"},
            "encoders": {"value": "0"},
            "jpegEngines": {"value": "7"},
            "memory": {"value": "81152Mi"},
            "multiprocessors": {"value": "132"},
            "ofaEngines": {"value": "1"},
        },
        "consumesCounters": [{"counterSet": "gpu-0-counter-set", "counters": ALL_COUNTERS}],
    }


def test_mig_device_takes_its_share_and_its_place():
    assert DEVICES["gpu-0-mig-1g20gb-15-6"] == {
        "name": "gpu-0-mig-1g20gb-15-6",
        "attributes": {
            "type": {"string": "mig"},
            "parentUUID": {"string": WHOLE_UUID},
            "profile": {"string": "1g.20gb"},
        }
        | COMMON,
        "capacity": {
            "copyEngines": {"value": "1"},
            "decoders": {"value": "1"},
            "encoders": {"value": "0"},
            "jpegEngines": {"value": "1"},
            "memory": {"value": "20096Mi"},
            "multiprocessors": {"value": "26"},
            "ofaEngines": {"value": "0"},
        },
        "consumesCounters": [
            {
                "counterSet": "gpu-0-counter-set",
                "counters": {
                    "copy-engines": {"value": "1"},
                    "decoders": {"value": "1"},
                    "encoders": {"value": "0"},
                    "jpeg-engines": {"value": "1"},
                    "memory": {"value": "20096Mi"},
                    "multiprocessors": {"value": "26"},
                    "ofa-engines": {"value": "0"},
                    "memory-slice-6": {"value": "1"},
                    "memory-slice-7": {"value": "1"},
                },
            }
        ],
    }


def test_a_card_is_26_devices_sorted_by_name():
    assert Counter(device["attributes"].get("profile", {}).get("string", "whole") for device in CARD) == {
        "whole": 1,
        "1g.10gb": 7,
        "1g.10gb+me": 7,
        "1g.20gb": 4,
        "2g.20gb": 3,
        "3g.40gb": 2,
        "4g.40gb": 1,
        "7g.80gb": 1,
    }
    assert list(DEVICES) == sorted(DEVICES)


def test_two_devices_fit_together_only_where_their_places_are_apart():
    for one, other in combinations(DEVICES, 2):
        apart = placement(one).isdisjoint(placement(other))
        both_media = "-me-" in one and "-me-" in other
        assert fits(one, other) == (apart and not both_media), (one, other)


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        ([f"gpu-0-mig-1g10gb-19-{start}" for start in range(7)], True),
        ([f"gpu-0-mig-1g20gb-15-{start}" for start in (0, 2, 4, 6)], True),
        (["gpu-0-mig-4g40gb-5-0", "gpu-0-mig-3g40gb-9-4"], True),
        (["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"], True),
        (
            [
                "gpu-0-mig-2g20gb-14-0",
                "gpu-0-mig-2g20gb-14-2",
                "gpu-0-mig-2g20gb-14-4",
                "gpu-0-mig-1g10gb-19-6",
            ],
            True,
        ),
        (
            [
                "gpu-0-mig-1g10gb-19-0",
                "gpu-0-mig-1g10gb-19-1",
                "gpu-0-mig-2g20gb-14-2",
                "gpu-0-mig-3g40gb-9-4",
            ],
            True,
        ),
        (["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-4g40gb-5-0"], False),
        (["gpu-0", "gpu-0-mig-1g10gb-19-6"], False),
        ([*(f"gpu-0-mig-1g10gb-19-{start}" for start in range(7)), "gpu-0-mig-1g10gb-me-20-6"], False),
    ],
)
def test_known_combinations(names, allowed):
    assert fits(*names) is allowed


def test_names_and_sizes_stay_within_the_api():
    dns_label = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
    c_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
    for name, slice_ in POOL.items():
        assert re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", name)
        assert ("devices" in slice_) != ("sharedCounters" in slice_)
        assert len(slice_.get("sharedCounters", [])) <= 8
        assert len(slice_.get("devices", [])) <= 64
        for counter_set in slice_.get("sharedCounters", []):
            assert len(counter_set["counters"]) <= 32
            assert all(dns_label.fullmatch(counter) for counter in counter_set["counters"])
        for device in slice_.get("devices", []):
            assert dns_label.fullmatch(device["name"])
            assert all(c_identifier.fullmatch(key.rpartition("/")[2]) for key in device["attributes"])
            assert all(c_identifier.fullmatch(key) for key in device["capacity"])
            assert len(device["attributes"]) + len(device["capacity"]) <= 32
            values = (v for attribute in device["attributes"].values() for v in attribute.values())
            assert all(len(str(value)) <= 64 for value in values)


def test_cards_are_told_apart_for_ever():
    found = [slot for node in H100.node_names() for slot in slots(H100, node)]
    assert len({slot.uuid for slot in found}) == 16
    assert found == [slot for node in H100.node_names() for slot in slots(H100, node)]
    first = found[:8]
    assert len({slot.pci_bus_id for slot in first}) == 8
    assert Counter(slot.pcie_root for slot in first) == dict.fromkeys({slot.pcie_root for slot in first}, 2)
    assert [slot.numa_node for slot in first] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_tainted_card_taints_all_that_is_cut_from_it():
    taint = {
        "key": "gpu.nvidia.com/xid",
        "value": "79",
        "effect": "NoSchedule",
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    pool = slices.pool(FLEET, H100, "h100-0", {"gpu-3": [taint], "gpu-4-mig-1g10gb-19-0": [taint]})
    tainted = {d["name"] for s in pool.values() for d in s.get("devices", []) if d.get("taints") == [taint]}
    assert tainted == {name.replace("gpu-0", "gpu-3", 1) for name in DEVICES} | {"gpu-4-mig-1g10gb-19-0"}


def test_cards_cut_beforehand_are_published_as_they_are():
    static = next(kind for kind in FLEET.kinds if kind.name == "a100-static")
    [(name, published)] = slices.pool(FLEET, static, "a100-static-0", {}).items()
    assert name == "a100-static-0-gpu.nvidia.com-devices"
    assert published["pool"] == {"name": "a100-static-0", "resourceSliceCount": 1}
    found = published["devices"]
    assert len({device["attributes"]["uuid"]["string"] for device in found}) == len(found) == 32
    assert all(device["attributes"]["uuid"]["string"].startswith("MIG-") for device in found)
    assert not any("consumesCounters" in device for device in found)
    first = [device for device in found if device["name"].startswith("gpu-0-")]
    assert {device["attributes"]["parentUUID"]["string"] for device in first} == {
        slots(static, "a100-static-0")[0].uuid
    }
    occupied = [slice_ for device in first for slice_ in device["capacity"] if slice_.startswith("memorySlice")]
    assert len(occupied) == len(set(occupied)) == 8
    [largest] = [device for device in first if device["attributes"]["profile"]["string"] == "3g.40gb"]
    assert {key: value["value"] for key, value in largest["capacity"].items()} == {
        "copyEngines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "0",
        "memory": "40192Mi",
        "multiprocessors": "42",
        "ofaEngines": "0",
        **dict.fromkeys((f"memorySlice{index}" for index in range(4, 8)), "1"),
    }


def test_a_card_in_shares_may_be_held_by_several_claims():
    shares = next(kind for kind in FLEET.kinds if kind.name == "l40s-shares")
    [published] = slices.pool(FLEET, shares, "l40s-shares-0", {}).values()
    assert [device["name"] for device in published["devices"]] == [f"gpu-{minor}" for minor in range(4)]
    for device in published["devices"]:
        assert device["allowMultipleAllocations"] is True
        assert device["attributes"]["type"] == {"string": "gpu"}
        assert device["capacity"] == {
            "memory": {
                "value": "46068Mi",
                "requestPolicy": {"default": "0", "validRange": {"min": "0", "max": "46068Mi", "step": "1Mi"}},
            },
            "shares": {
                "value": "4",
                "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}},
            },
        }


@pytest.mark.parametrize("geometry", TABLES.values(), ids=TABLES)
def test_every_layout_finds_its_place_on_a_card(geometry):
    for layout in layouts(geometry):
        assert is_valid(geometry, placed(geometry, layout))


def test_a_layout_that_no_card_can_have_is_refused():
    with pytest.raises(ValueError, match="A100-80GB cannot be cut into"):
        placed(TABLES["A100-80GB"], {"4g.40gb": 2})


def test_before_kubernetes_1_36_cards_are_published_whole_and_unhealthy_ones_not_at_all() -> None:
    before = FLEET.on((1, 35))
    h100 = next(kind for kind in before.kinds if kind.name == "h100")
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    [published] = slices.pool(before, h100, "h100-0", {"gpu-3": [taint]}).values()
    assert "sharedCounters" not in published
    assert [device["name"] for device in published["devices"]] == [f"gpu-{n}" for n in range(8) if n != 3]
    assert not any("consumesCounters" in device or "taints" in device for device in published["devices"])
    assert FLEET.on((1, 36)) == FLEET
