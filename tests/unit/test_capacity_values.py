"""What units of capacity are worth in GPUs: on every node of the simulated fleet as many as the node has."""

from fractions import Fraction
from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.domain.objects import ObservedObject, Ref
from allocations.reconcile.inventory import node_fact, slice_fact
from allocations.reconcile.metering import node_units
from allocations.reconcile.metering.capacity_values import values
from deploy.local.fleet import nodes, spec
from quotas.catalog.discovery import discover
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit
from tests.support.claims import facts
from tests.support.gpu_facts import plugin_node

FLEET = spec.load(spec.FLEET_FILE)


def observed(kind: str, name: str, found: Any) -> ObservedObject:
    return ObservedObject(Ref(kind, "", name), "uid", 1, facts=found)


@pytest.mark.parametrize("kind", FLEET.kinds, ids=lambda kind: kind.name)
def test_the_units_of_a_node_are_worth_its_gpus(kind: spec.Kind):
    name = f"{kind.name}-0"
    manifest = nodes.node(FLEET, kind, name)
    manifest["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    node: Any = KINDS["Node"].projector(manifest)
    slices = facts(kind.name, 1) if kind.path == "dra" else ()
    units = {Unit(name, GPU, gpu): one for gpu, one in node_units.gpus(node, slices, {}).items()}
    units |= {Unit(name, RESOURCE, resource): one for resource, one in node_units.resources(node, {}).items()}
    found = discover(
        [node_fact(observed("Node", name, node))],
        [slice_fact(observed("ResourceSlice", f"s{number}", one)) for number, one in enumerate(slices)],
    )
    [flavor] = found.flavors
    worth = values(units, {}, found, {flavor.name})
    assert units.keys() == worth.keys()
    assert sum((one.count * worth[unit].gpus for unit, one in units.items()), Fraction(0)) == kind.gpus
    assert {(one.flavor, one.offered) for one in worth.values()} == {(flavor.name, True)}


@pytest.mark.parametrize(
    ("amounts", "replicas", "expected"),
    [
        ({"nvidia.com/gpu": 12}, "1", {"nvidia.com/gpu": (Fraction(1, 3), False)}),
        (
            {"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 8},
            "4",
            {"nvidia.com/gpu": (Fraction(1), False), "nvidia.com/gpu.shared": (Fraction(1, 4), True)},
        ),
    ],
)
def test_what_the_labels_of_a_node_contradict_is_worth_what_they_say_and_not_offered(
    amounts: dict[str, int], replicas: str, expected: dict[str, tuple[Fraction, bool]]
):
    found = discover([plugin_node("l4-0", "NVIDIA-L4", amounts, gpu_count="4", gpu_replicas=replicas)], [])
    units = {Unit("l4-0", RESOURCE, name): FoundUnit(count, count) for name, count in amounts.items()}
    worth = values(units, {}, found, {"l4"})
    assert {unit.name: (one.gpus, one.offered) for unit, one in worth.items()} == expected
