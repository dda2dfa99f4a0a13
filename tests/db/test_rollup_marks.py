"""Which hours a change of the ledger marks, so that they are rolled up again."""

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from uuid import uuid4

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import rollups, services
from quotas.costs.models import Price
from quotas.metering import capacity, foreign
from quotas.metering import services as metering
from quotas.metering.corrections import correct_pod_ends
from quotas.metering.foreign import Start, Use
from quotas.metering.hours import HOUR
from quotas.metering.inferred_capacity import infer
from quotas.metering.models import DirtyHour
from quotas.metering.units import GPU, RESOURCE, Value
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, record
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.quotas import T0, attribution, hour, used
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_ten(db: None) -> Iterator[None]:
    """Run the test at ten past ten, counted from the test's first hour: nine hours and the tenth may be rolled up."""
    fleet()
    with clock.frozen(hour(10) + timedelta(minutes=10)):
        yield


def marked() -> list[int]:
    """Return the hours that are marked, counted from the test's first one."""
    hours = DirtyHour.objects.order_by("hour").values_list("hour", flat=True).distinct()
    return [(each - T0) // HOUR for each in hours]


def test_a_hold_of_the_present_hour_marks_nothing_and_asks_nothing() -> None:
    with executed() as queries:
        row = metering.open_interval(uuid4(), uuid4(), "slot", hour(10.05), attribution(), 1, SEEN)
        metering.close_interval(row.key, hour(10.1), SEEN)
    assert not [sql for sql, _ in queries if "dirty" in sql]
    assert marked() == []


def test_a_hold_that_began_in_the_past_and_ends_now_marks_nothing() -> None:
    with clock.frozen(hour(2)):
        row = metering.open_interval(uuid4(), uuid4(), "slot", hour(2), attribution(), 1, SEEN)
    metering.close_interval(row.key, hour(10.1), SEEN)
    assert marked() == []


def test_a_start_that_comes_late_marks_the_hours_from_it_on() -> None:
    metering.open_interval(uuid4(), uuid4(), "slot", hour(7.5), attribution(), 1, SEEN)
    assert marked() == [7, 8, 9]


def test_an_end_that_comes_late_marks_the_hours_from_it_on() -> None:
    with clock.frozen(hour(2)):
        row = metering.open_interval(uuid4(), uuid4(), "slot", hour(2), attribution(), 1, SEEN)
    metering.close_interval(row.key, hour(8.5), SEEN)
    assert marked() == [8, 9]
    DirtyHour.objects.all().delete()
    metering.close_interval(row.key, hour(4), SEEN)
    assert marked() == []


def test_ends_that_come_late_together_mark_the_hours_from_the_first_on() -> None:
    keys = {}
    for start in (2, 8.5):
        with clock.frozen(hour(start)):
            row = metering.open_interval(uuid4(), uuid4(), f"slot-{start}", hour(start), attribution(), 1, SEEN)
        keys[row.key] = SEEN
    DirtyHour.objects.all().delete()
    metering.close_intervals(keys, hour(7.5), estimated=True)
    assert marked() == [7, 8, 9]


def test_what_the_ledger_has_already_marks_nothing() -> None:
    with clock.frozen(hour(2)):
        row = metering.open_interval(uuid4(), uuid4(), "slot", hour(2), attribution(), 1, SEEN)
    metering.open_interval(row.key, uuid4(), "slot", hour(1), attribution(), 1, SEEN)
    assert marked() == []


def test_capacity_that_is_recorded_late_marks_its_hours() -> None:
    capacity.record(LOCAL, {"l40s-0": SEEN, "l40s-1": SEEN}, lambda before: RESOURCES, hour(6))
    assert marked() == [6, 7, 8, 9]
    DirtyHour.objects.all().delete()
    capacity.record(LOCAL, {"l40s-0": SEEN, "l40s-1": SEEN}, lambda before: RESOURCES, hour(7))
    assert marked() == []


def test_a_first_value_marks_the_hours_since_its_capacity_began() -> None:
    with clock.frozen(hour(8)):
        capacity.record(LOCAL, {"l40s-0": SEEN, "l40s-1": SEEN}, lambda before: RESOURCES, hour(8))
    rows = capacity.open_units(LOCAL)
    capacity.add_values(LOCAL, rows, {unit: Value("l40s", Fraction(1), offered=True) for unit in RESOURCES})
    assert marked() == [8, 9]
    DirtyHour.objects.all().delete()
    capacity.add_values(
        LOCAL, capacity.open_units(LOCAL), {unit: Value("l40s", Fraction(1), offered=False) for unit in RESOURCES}
    )
    assert marked() == []


def test_a_beginning_of_capacity_that_is_inferred_marks_the_hours_since() -> None:
    record(RESOURCES, 0)
    record(GPUS, 9)
    hold_gpu("gpu-0", 7.5, 9.5)
    DirtyHour.objects.all().delete()
    assert infer(LOCAL) == 1
    assert marked() == [7, 8, 9]


def test_an_end_that_is_corrected_marks_the_hours_between_the_former_and_the_new_one() -> None:
    slot = f"{LOCAL}/pod:trainer/nvidia.com/gpu"
    use = Use(slot, "l40s-0", RESOURCE, "nvidia.com/gpu", 1, "Pod", "trainer", "trainer", "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(5), 1, estimated=False)])
    foreign.end(LOCAL, "trainer", [slot], hour(6.5), 2, estimated=True)
    DirtyHour.objects.all().delete()
    assert correct_pod_ends(LOCAL, "trainer", [], hour(8.5), SEEN) == 1
    assert marked() == [6, 7, 8]


def test_use_without_an_allocation_that_is_seen_late_marks_its_hours() -> None:
    slot = f"{LOCAL}/h100-0/gpu-0"
    use = Use(slot, "h100-0", GPU, "gpu-0", 1, "ResourceClaim", "trainer", "1", "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(7.2), 1, estimated=True)])
    assert marked() == [7, 8, 9]
    DirtyHour.objects.all().delete()
    foreign.end(LOCAL, "1", [slot], hour(9.5), 2, estimated=True)
    assert marked() == [9]


def test_a_first_price_in_the_past_marks_the_hours_of_every_cluster_until_the_next_one() -> None:
    other = make_cluster("other")
    Price.objects.all().delete()
    with clock.frozen(hour(3)):
        used(hour(3), None)
        used(hour(3), None, cluster=other.slug)
    flavor = Flavor.objects.get(name="l40s")
    services.set_price(SYSTEM, flavor.name, "2", "EUR", hour(8), "test")
    assert marked() == [8, 9]
    DirtyHour.objects.all().delete()
    services.set_price(SYSTEM, flavor.name, "1", "EUR", hour(1), "test")
    found = DirtyHour.objects.order_by().values_list("cluster", flat=True).distinct()
    assert (marked(), set(found)) == ([3, 4, 5, 6, 7], {LOCAL, other.slug})


def test_a_price_from_now_on_marks_nothing() -> None:
    used(hour(3), None)
    DirtyHour.objects.all().delete()
    services.set_price(SYSTEM, "l40s", "2", "EUR", source="test")
    assert marked() == []


def test_an_hour_is_marked_while_it_may_be_rolled_up_before_the_change_is_committed() -> None:
    with clock.frozen(hour(10) + timedelta(minutes=3)):
        used(hour(9.9), None)
    assert marked() == [9]
    DirtyHour.objects.all().delete()
    with clock.frozen(hour(10) + timedelta(minutes=1)):
        used(hour(9.9), None)
    assert marked() == []


def test_a_mark_that_a_roll_up_did_not_see_stays() -> None:
    """As if the change had been committed while the roll-up read the ledger."""
    used(hour(1), hour(2))
    rollups.roll_up(LOCAL, hour(0), hour(3))
    assert set(marked()).isdisjoint({0, 1, 2})
    metering.open_interval(uuid4(), uuid4(), "late", hour(1.5), attribution(), 1, SEEN)
    assert {1, 2} <= set(marked())
    rollups.roll_up(LOCAL, hour(1), hour(2))
    assert marked()[0] == 2
