"""Typed conditions on published devices: which devices their CEL selects."""

import random
from itertools import pairwise

import pytest

from allocations.claims.device_index import DeviceIndex
from allocations.claims.matching import holds, is_tolerated, meets
from allocations.claims.model import Choice, Condition, Device, Toleration, Value
from tests.support import exhaustive_claims
from tests.support.sizes import size

GPU = Device(
    node="h100-0",
    name="gpu-0",
    kind="gpu",
    attributes={
        "gpu.nvidia.com/brand": "Nvidia",
        "gpu.nvidia.com/driverVersion": "580.126.20",
        "resource.kubernetes.io/numaNode": 1,
        "gpu.nvidia.com/ecc": True,
    },
    versions=frozenset({"gpu.nvidia.com/driverVersion"}),
    capacity={"gpu.nvidia.com/memory": "81559Mi"},
    taints=(("gpu.nvidia.com/xid", "79", "NoExecute"), ("note", "", "None")),
)


@pytest.mark.parametrize(
    ("name", "type_", "operator", "values", "answer"),
    [
        ("brand", "string", "==", ("Nvidia",), True),
        ("brand", "string", "==", ("nvidia",), False),
        ("brand", "string", "!=", ("Tesla",), True),
        ("brand", "string", "in", ("Tesla", "Nvidia"), True),
        ("brand", "string", "in", ("Tesla",), False),
        ("missing", "string", "!=", ("x",), False),
        ("ecc", "bool", "==", (True,), True),
        ("ecc", "bool", "!=", (True,), False),
        ("resource.kubernetes.io/numaNode", "int", ">", (0,), True),
        ("resource.kubernetes.io/numaNode", "int", "<", (1,), False),
        ("resource.kubernetes.io/numaNode", "int", "<=", (1,), True),
        ("driverVersion", "version", ">=", ("580.126.20",), True),
        ("driverVersion", "version", ">", ("580.126.20-rc.1",), True),
        ("driverVersion", "version", "==", ("580.126.20+build.7",), True),
        ("driverVersion", "version", "<", ("580.126.3",), False),
        ("driverVersion", "version", "<", ("1000.0.0-1",), True),
        ("memory", "quantity", ">=", ("79Gi",), True),
        ("memory", "quantity", ">=", ("80Gi",), False),
        ("memory", "quantity", "==", ("85520809984",), True),
        ("memory", "quantity", "<", ("1T",), True),
    ],
)
def test_a_condition_holds_as_its_type_compares(
    name: str, type_: str, operator: str, values: tuple[Value, ...], answer: bool
):
    qualified = name if "/" in name else f"gpu.nvidia.com/{name}"
    assert holds(GPU, Condition(qualified, type_, operator, values)) is answer


def test_pre_releases_come_in_the_order_of_semver():
    order = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"]
    for lower, higher in pairwise(order):
        device = Device("n", "d", "gpu", {"gpu.nvidia.com/v": lower}, frozenset({"gpu.nvidia.com/v"}))
        assert holds(device, Condition("gpu.nvidia.com/v", "version", "<", (higher,)))


def test_a_device_of_another_kind_or_for_one_claim_alone_is_none():
    assert meets(GPU, Choice("", "", "gpu", 1))
    assert not meets(GPU, Choice("", "", "mig", 1))
    assert not meets(GPU, Choice("", "", "gpu", 1, capacity={"gpu.nvidia.com/shares": "1"}))


def test_an_index_finds_the_devices_that_a_look_at_each_one_finds():
    found = 0
    for seed in range(size(100, 2000)):
        chance = random.Random(seed)
        kind, devices = exhaustive_claims.small_fleet(chance)
        index = DeviceIndex(devices.devices)
        for choice in (*exhaustive_claims.random_claim(chance, kind).choices, *(conditional(chance) for _ in range(3))):
            numbers = [n for n, device in enumerate(index.devices) if meets(device, choice)]
            assert (index.matching(choice), index.count(choice)) == (numbers, len(numbers)), f"seed {seed}"
            groups = index.groups(choice)
            assert sum(group.size for group in groups) == len(numbers)
            assert all(meets(group.device, choice) and group.device.node == group.node for group in groups)
            found += bool(numbers)
    assert found >= size(100, 2000)


def conditional(chance: random.Random) -> Choice:
    """Return a choice of devices by what those of the simulated fleet publish."""
    conditions = [
        Condition(f"gpu.nvidia.com/{name}", type_, chance.choice(["==", "!=", "<", "<=", ">", ">="]), (value,))
        for name, type_, value in chance.choices(
            [
                ("memory", "quantity", "20Gi"),
                ("memory", "quantity", "9984Mi"),
                ("driverVersion", "version", "580.126.20"),
                ("driverVersion", "version", "580.200.0-rc.1"),
                ("missing", "string", "x"),
            ],
            k=chance.choice([1, 1, 2]),
        )
    ]
    return Choice("", "", chance.choice(["gpu", "mig"]), 1, tuple(conditions))


@pytest.mark.parametrize(
    ("toleration", "answer"),
    [
        (Toleration("gpu.nvidia.com/xid", "Exists", "", ""), True),
        (Toleration("", "Exists", "", "NoExecute"), True),
        (Toleration("gpu.nvidia.com/xid", "Equal", "79", "NoExecute"), True),
        (Toleration("gpu.nvidia.com/xid", "Equal", "48", "NoExecute"), False),
        (Toleration("gpu.nvidia.com/xid", "Exists", "", "NoSchedule"), False),
        (Toleration("other", "Exists", "", ""), False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration: Toleration, answer: bool):
    assert is_tolerated(GPU, Choice("", "", "gpu", 1, tolerations=(toleration,))) is answer


def test_a_taint_without_effect_keeps_nobody_away():
    assert not is_tolerated(GPU, Choice("", "", "gpu", 1))
    assert is_tolerated(Device("n", "d", "gpu", {}, taints=(("note", "", "None"),)), Choice("", "", "gpu", 1))
