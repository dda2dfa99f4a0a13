"""What the catalogue adds to the capacity ledger: the flavor of a unit, its GPUs, and whether it is offered."""

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from allocations.reconcile import mirror
from allocations.reconcile.inventory import node_fact, reconcile_inventory
from allocations.reconcile.metering import capacity_ledger
from portal.core.errors import Retryable
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from portal.workqueue import targets
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor
from quotas.metering.capacity import open_units
from quotas.metering.models import CapacityInterval
from tests.support.capacity_bodies import (
    A100,
    BALANCED,
    HUGE,
    L40S,
    accept_all,
    gpu,
    h100,
    node,
    of,
    offered,
    slices,
    watch,
)
from tests.support.clusters import LOCAL
from tests.support.observed import at

pytestmark = pytest.mark.django_db


def test_the_catalogue_adds_flavor_and_gpus_from_the_start_on():
    watch(0, node(), h100(), slices(1, [gpu(0)]))
    watch(60, node(revision=2, ready=False))
    reconcile_inventory(LOCAL)
    rows = CapacityInterval.objects.order_by("name", "start")
    worth = [(row.flavor, row.value.gpus if row.value else None) for row in rows]
    assert worth == [("h100", Fraction(1)), ("l40s", Fraction(1)), ("l40s", Fraction(1))]
    assert [row.start for row in rows] == [at(0), at(0), at(60)]


def test_the_units_of_a_fixed_layout_are_worth_the_nodes_gpus():
    """Their slices alone add up to 8.57 GPUs: 16/7 + 8 * 2/7 + 8 * 1/2."""
    watch(0, node("a100-0", capacity=BALANCED, labels=A100))
    reconcile_inventory(LOCAL)
    rows = CapacityInterval.objects.all()
    values = {row.name: row.value.gpus for row in rows if row.value}
    assert sum(values[row.name] * row.count for row in rows) == 8
    assert values["nvidia.com/mig-3g.40gb"] / values["nvidia.com/mig-1g.10gb"] == Fraction(1, 2) / Fraction(1, 7)


def test_time_sliced_units_are_a_part_of_a_gpu_each():
    labels = {**L40S, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    watch(0, node(capacity={"nvidia.com/gpu.shared": 16}, labels=labels))
    reconcile_inventory(LOCAL)
    value = of("nvidia.com/gpu.shared").value
    assert value is not None
    assert value.gpus == Fraction(1, 4)


def test_what_is_not_offered_yet_becomes_offered_in_a_new_interval():
    watch(0, node())
    reconcile_inventory(LOCAL)
    assert of("nvidia.com/gpu").offered is False
    accept_all()
    reconcile_inventory(LOCAL)
    reconcile_inventory(LOCAL)
    before, after = CapacityInterval.objects.order_by("start")
    assert (before.offered, after.offered) == (False, True)
    assert (before.end, after.end) == (after.start, None)


def test_to_offer_a_flavor_or_hide_it_has_its_capacity_valued_at_once():
    watch(0, node())
    reconcile_inventory(LOCAL)
    flavor = Flavor.objects.get()
    for decided in ({"accepted": True}, {"hidden": True}):
        WorkItem.objects.all().delete()
        catalog.configure_flavor(SYSTEM, flavor, decided)
        assert WorkItem.objects.filter(target=targets.inventory(LOCAL)).exists()


def test_a_unit_keeps_its_value_while_its_availability_changes():
    watch(0, node())
    reconcile_inventory(LOCAL)
    watch(60, node(revision=2, ready=False))
    assert of("nvidia.com/gpu").flavor == "l40s"


def test_a_pool_that_is_being_published_anew_stays_offered():
    offered(h100(), slices(1, [gpu(0), gpu(1)]))
    before = CapacityInterval.objects.count()
    watch(60, slices(2, [gpu(0)], generation=2, count=2))
    reconcile_inventory(LOCAL)
    assert (of("gpu-0").flavor, of("gpu-0").offered) == ("h100", True)
    assert CapacityInterval.objects.count() == before


def test_a_node_without_the_taint_keeps_its_flavor_and_is_not_offered():
    offered(node())
    bare = node(revision=2)
    bare["spec"]["taints"] = []
    watch(60, bare)
    reconcile_inventory(LOCAL)
    assert (of("nvidia.com/gpu").flavor, of("nvidia.com/gpu").offered) == ("l40s", False)


def test_gpus_that_are_all_missing_keep_their_flavor():
    offered(h100(), slices(1, [gpu(0)]))
    watch(60, slices(2, [], generation=2))
    reconcile_inventory(LOCAL)
    assert (of("gpu-0").flavor, of("gpu-0").state) == ("h100", "missing")


def test_what_discovery_read_before_a_change_is_not_added_to_what_began_since():
    def shared(revision: int, replicas: int) -> dict[str, Any]:
        labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": str(replicas)}
        return node(revision=revision, capacity={"nvidia.com/gpu.shared": 4 * replicas}, labels={**L40S, **labels})

    watch(0, shared(1, 4))
    units, snapshot = open_units(LOCAL), mirror.of_nodes(LOCAL)
    found = discover([node_fact(one) for one in snapshot.of_kind("Node")], [])
    watch(60, shared(2, 2))
    capacity_ledger.add_values(LOCAL, units, found)
    assert of("nvidia.com/gpu.shared").value is None


def test_new_flavors_are_told_on_even_if_their_values_cannot_be_added():
    watch(0, node())
    WorkItem.objects.all().delete()
    with patch.object(capacity_ledger, "add_values", side_effect=Retryable("locked")), pytest.raises(Retryable):
        reconcile_inventory(LOCAL)
    assert WorkItem.objects.filter(target=targets.platform(LOCAL)).exists()


def test_a_node_whose_value_no_number_has_room_for_keeps_none_from_the_others():
    watch(0, node(capacity=HUGE, labels=A100), node("l40s-1"))
    reconcile_inventory(LOCAL)
    assert {(row.node, row.value is None) for row in CapacityInterval.objects.all()} == {
        ("l40s-0", True),
        ("l40s-1", False),
    }
