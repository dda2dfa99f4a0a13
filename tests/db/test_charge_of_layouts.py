"""What a node with a fixed MIG layout is charged, from the cluster's observations to the GPU-hours by category."""

from datetime import datetime
from fractions import Fraction
from typing import Any

import pytest

from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from demo import prices as demo_prices
from quotas.catalog.models import Offering
from quotas.costs import selectors
from quotas.metering.models import CapacityInterval, UsageInterval
from quotas.metering.parts import Category
from tests.support import hours_by_flavor
from tests.support.clusters import LOCAL
from tests.support.observed import at, seen
from tests.support.quotas import used

pytestmark = pytest.mark.django_db
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81920",
}
STATE = "nvidia.com/mig.config.state"
BALANCED = {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8}
SEVENTHS = {"nvidia.com/mig-1g.10gb": 56}
HOUR_S = 3600


def observe(second: float, units: dict[str, int], revision: int, state: str = "success", name: str = "a100-0") -> None:
    """Record a node with these units, and update the catalogue."""
    body: dict[str, Any] = {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": str(revision),
            "labels": {**LABELS, STATE: state},
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "capacity": units,
            "allocatable": dict.fromkeys(units, 0) if state == "pending" else units,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    record_observations(LOCAL, [seen(body, second)])
    reconcile_inventory(LOCAL)


def hold_all(start: datetime, end: datetime | None) -> None:
    """Hold every unit of the flavor, each offering in one interval, as its catalogue item says now."""
    for one in Offering.objects.filter(flavor__name="a100").select_related("pool__use"):
        count = one.pool.use.total
        used(start, end, count, offering=one.key, flavor="a100", kind=one.kind, gpu_share=one.gpu_share)


def share(profile: str) -> Fraction:
    return Offering.objects.get(profile=profile).gpu_share


def parts(start: datetime, end: datetime) -> dict[Category, Fraction]:
    [found] = hours_by_flavor.by_flavor(start, end)
    assert found.is_balanced
    return {category: amount for category, amount in found.parts.items() if amount}


@pytest.mark.parametrize("units", [BALANCED, SEVENTHS, {"nvidia.com/mig-2g.20gb": 24}])
def test_a_full_node_is_charged_its_gpus_without_variance(units: dict[str, int]):
    observe(0, units, 1)
    hold_all(at(0), at(HOUR_S))
    assert parts(at(0), at(HOUR_S)) == {Category.HELD: 8}


def test_a_full_flavor_of_nodes_with_different_layouts_is_charged_its_gpus():
    observe(0, BALANCED, 1)
    observe(0, SEVENTHS, 2, name="a100-1")
    hold_all(at(0), at(HOUR_S))
    assert parts(at(0), at(HOUR_S)) == {Category.HELD: 16}


def test_the_list_price_of_a_full_node_is_that_of_its_gpus():
    observe(0, BALANCED, 1)
    demo_prices.price()
    prices = selectors.prices_per_hour(Offering.objects.select_related("flavor"), at(HOUR_S))
    assert prices["a100/mig-1g.10gb"] == Fraction("1.80") * Fraction(2, 15)
    units = {name.removeprefix("nvidia.com/"): number for name, number in BALANCED.items()}
    assert sum(prices[f"a100/{name}"] * number for name, number in units.items()) == 8 * Fraction("1.80")


def test_a_price_changes_once_a_new_layout_is_complete_and_open_intervals_keep_their_share():
    observe(0, BALANCED, 1)
    hold_all(at(0), None)
    observe(10, SEVENTHS, 2, "pending")
    assert share("1g.10gb") == Fraction(2, 15)
    observe(20, {**BALANCED, **SEVENTHS}, 3)
    assert share("1g.10gb") == Fraction(2, 15)
    observe(30, SEVENTHS, 4)
    assert share("1g.10gb") == Fraction(1, 7)
    charged = {row.offering: row.gpus / row.count for row in UsageInterval.objects.filter(end=None)}
    assert charged["a100/mig-1g.10gb"] == Fraction(2, 15)


def test_a_layout_that_failed_on_one_gpu_changes_no_price_and_nobody_is_charged_for_that_gpu():
    observe(0, BALANCED, 1)
    observe(10, {"nvidia.com/mig-1g.10gb": 14, "nvidia.com/mig-2g.20gb": 7, "nvidia.com/mig-3g.40gb": 7}, 2, "failed")
    assert share("1g.10gb") == Fraction(2, 15)
    hold_all(at(10), at(10 + HOUR_S))
    assert parts(at(10), at(10 + HOUR_S)) == {Category.HELD: 7, Category.UNAVAILABLE: 1}


def test_a_layout_of_another_node_changes_the_price_and_not_what_a_unit_is_worth():
    observe(0, BALANCED, 1)
    observe(10, SEVENTHS, 2, name="a100-1")
    assert share("1g.10gb") == Fraction(19, 135)
    [row] = CapacityInterval.objects.filter(node="a100-0", name="nvidia.com/mig-1g.10gb")
    assert row.value is not None
    assert row.value.gpus == Fraction(2, 15)
