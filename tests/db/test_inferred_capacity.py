"""Capacity that a use shows before it is known, and capacity of which the catalogue never knew anything."""

import random
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from uuid import uuid4

import pytest

from allocations.cluster.kinds import KINDS
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.metering import balance_proof
from allocations.reconcile.mirror_writer import record_sync
from portal.core import clock
from quotas.metering import accounts, balance, capacity, foreign
from quotas.metering.foreign import Start, Use
from quotas.metering.inferred_capacity import infer
from quotas.metering.models import BalanceProof, CapacityInterval
from quotas.metering.parts import Category
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, record, use_gpu_without_allocation
from tests.support.capacity_bodies import node, watch
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.observed import at
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
GPU_0 = Unit("h100-0", GPU, "gpu-0")


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    """Record two l40s from the beginning on."""
    fleet()
    record(RESOURCES, 0)


def history(name: str = "gpu-0") -> list[tuple[datetime, datetime | None, bool]]:
    rows = CapacityInterval.objects.filter(name=name, node="h100-0").order_by("start")
    return [(row.start, row.end, row.inferred) for row in rows]


def infer_at(at: float = 5) -> int:
    with clock.frozen(hour(at)):
        return infer(LOCAL)


def use_resource(node: str, start: float, count: int = 1) -> None:
    uid = str(uuid4())
    slot = f"{LOCAL}/pod:{uid}/nvidia.com/gpu"
    use = Use(slot, node, RESOURCE, "nvidia.com/gpu", count, "Pod", "trainer", uid, "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(start), 1, estimated=False)])


def test_a_gpu_that_is_held_before_it_is_known_is_there_from_then_on() -> None:
    record(GPUS, 2)
    hold_gpu("gpu-0", 1, 3)
    assert balance.of_hour(LOCAL, hour(1)).parts[Category.VARIANCE] == -1
    assert infer_at() == 1
    assert history() == [(hour(1), hour(2), True), (hour(2), None, False)]
    found = balance.of_hour(LOCAL, hour(1))
    assert not found.failures
    assert (found.capacity, found.parts[Category.HELD]) == (Fraction(9), Fraction(1))
    assert found.parts[Category.VARIANCE] == 0


def test_a_mig_slice_shows_its_gpu() -> None:
    record(GPUS, 2)
    hold_gpu("gpu-0-mig-1g10gb-19-0", 1.5, 3, gpu_share=Fraction(1, 7))
    infer_at()
    assert history()[0] == (hour(1.5), hour(2), True)


def test_an_unmanaged_use_shows_its_gpu() -> None:
    record(GPUS, 2)
    use_gpu_without_allocation("gpu-1", 1, 3)
    infer_at()
    assert history("gpu-1")[0] == (hour(1), hour(2), True)
    assert balance.of_hour(LOCAL, hour(1)).parts[Category.UNMANAGED] == 1


def test_a_pod_shows_the_resource_of_its_node_as_it_is_known_later() -> None:
    record({Unit("l40s-9", RESOURCE, "nvidia.com/gpu"): FoundUnit(4, 3, "unhealthy")}, 2)
    use_resource("l40s-9", 1)
    infer_at()
    row = CapacityInterval.objects.get(inferred=True)
    assert (row.node, row.start, row.end, row.count, row.available) == ("l40s-9", hour(1), hour(2), 4, 3)
    found = balance.of_hour(LOCAL, hour(1))
    assert found.failures == []
    assert found.parts[Category.UNMANAGED] == found.parts[Category.UNAVAILABLE] == 1


def test_a_pod_of_a_queued_job_shows_the_resource_of_its_node() -> None:
    record({Unit("l40s-9", RESOURCE, "nvidia.com/gpu"): FoundUnit(4, 4)}, 2)
    row = used(hour(1), None, node="l40s-9", member="")
    type(row).objects.filter(pk=row.pk).update(slot=f"{LOCAL}/pod:{uuid4()}/nvidia.com/gpu")
    assert infer_at() == 1


def test_a_use_in_a_gap_shows_that_the_gpu_is_back() -> None:
    record(GPUS, 0)
    capacity.record(LOCAL, {"h100-0": SEEN}, lambda before: {}, hour(1))
    record(GPUS, 3)
    hold_gpu("gpu-0", 2, 4)
    infer_at()
    assert history() == [(hour(0), hour(1), False), (hour(2), hour(3), True), (hour(3), None, False)]


def test_a_use_that_outlives_its_gpu_shows_nothing() -> None:
    record(GPUS, 0)
    hold_gpu("gpu-0", 0.5, 4)
    capacity.record(LOCAL, {"h100-0": SEEN}, lambda before: {}, hour(1))
    record(GPUS, 3)
    assert infer_at() == 0


def test_nothing_is_inferred_before_the_clusters_capacity_was_recorded() -> None:
    record(GPUS, 2)
    hold_gpu("gpu-0", -4, 3)
    infer_at()
    assert history()[0] == (hour(0), hour(2), True)
    for number in (-2, -1, 0, 1):
        assert balance.of_hour(LOCAL, hour(number)).failures == []


def test_it_may_be_repeated_and_a_fact_that_comes_late_adds_to_it() -> None:
    record(GPUS, 3)
    hold_gpu("gpu-0", 2, 4)
    assert (infer_at(), infer_at()) == (1, 0)
    use_gpu_without_allocation("gpu-0", 1, 1.5)
    assert (infer_at(), infer_at()) == (1, 0)
    assert history() == [(hour(1), hour(2), True), (hour(2), hour(3), True), (hour(3), None, False)]


@pytest.mark.parametrize("seed", range(8))
def test_the_order_in_which_facts_arrive_changes_nothing(seed: int) -> None:
    """Whatever the order of four uses before a GPU is known, and however often it is inferred between them."""
    rng = random.Random(seed)
    record(GPUS, 4)
    uses = [(0.5, 1.0), (1.25, 2.0), (2.5, 3.5), (3.75, 6.0)]
    for start, end in rng.sample(uses, len(uses)):
        use_gpu_without_allocation("gpu-0", start, end)
        for _ in range(rng.randrange(3)):
            infer_at(7)
    infer_at(7)
    found = history()
    assert (found[0][0], found[-1]) == (hour(0.5), (hour(4), None, False))
    assert all(one[1] == other[0] for one, other in pairwise(found))
    for number in range(7):
        assert balance.of_hour(LOCAL, hour(number)).failures == []


def test_it_is_inferred_before_an_hour_is_checked() -> None:
    record(GPUS, 2)
    hold_gpu("gpu-0", 1, 3)
    with clock.frozen(hour(5.1)):
        record_sync(LOCAL, *((kind, 1, hour(4)) for kind in KINDS.values()))
        balance_proof.prove_due()
    assert history()[0] == (hour(1), hour(2), True)
    assert BalanceProof.objects.get(hour=hour(1)).variance == 0


def test_it_is_inferred_when_the_catalogue_has_read_the_node() -> None:
    """A pod without an allocation is bound to a node a minute before the node is seen."""
    use_resource("l40s-9", 12)
    watch(60, node("l40s-9"))
    with clock.frozen(at(120)):
        reconcile_inventory(LOCAL)
    row = CapacityInterval.objects.get(inferred=True)
    assert (row.node, row.start, row.end, row.flavor, row.count) == ("l40s-9", at(0), at(60), "l40s", 4)


def test_a_node_that_left_before_the_catalogue_knew_it_is_unavailable() -> None:
    unit = Unit("new-0", RESOURCE, "nvidia.com/gpu")
    capacity.record(LOCAL, {"new-0": SEEN}, lambda before: {unit: FoundUnit(4, 4)}, hour(0.25))
    assert balance.of_hour(LOCAL, hour(0)).capacity == 8
    capacity.record(LOCAL, {"new-0": SEEN}, lambda before: {}, hour(0.75))
    found = balance.of_hour(LOCAL, hour(0))
    assert not found.failures
    assert (found.capacity, found.parts[Category.UNAVAILABLE]) == (Fraction(10), Fraction(2))
    account = accounts.read(hour(0), hour(1))[accounts.AccountKey(LOCAL, "", "", "nvidia.com/gpu")]
    assert [one.gpus for one in account.capacity] == [4]


def test_use_of_a_node_that_left_before_the_catalogue_knew_it_is_unmanaged() -> None:
    capacity.record(LOCAL, {"h100-0": SEEN}, lambda before: {GPU_0: FoundUnit(1, 1)}, hour(0))
    use_gpu_without_allocation("gpu-0", 0.25, 0.5)
    capacity.record(LOCAL, {"h100-0": SEEN}, lambda before: {}, hour(1))
    found = balance.of_hour(LOCAL, hour(0))
    assert not found.failures
    assert found.parts[Category.UNMANAGED] == Fraction(1, 4)
