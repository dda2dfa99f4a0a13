"""GPU-hours of the fleet by category, from the intervals in the database."""

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from quotas.catalog.models import Offering
from quotas.catalog.services import hide_offering
from quotas.costs import rollups
from quotas.metering import accounts, capacity, fleet_hours, foreign, stranded_gpus
from quotas.metering.foreign import Start, Use
from quotas.metering.models import DirtyHour
from quotas.metering.parts import Category
from quotas.metering.stranding import StrandedGpus
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit
from tests.support import hours_by_flavor
from tests.support.capacity import GPUS, ONE, RESOURCES, SEEN, always, hold_gpu, offer, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import person
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    fleet()


def hours(flavor: str, start: float = 0, end: float = 10) -> dict[str, Fraction]:
    """Return the GPU-hours by category, without those of zero."""
    [found] = [one for one in hours_by_flavor.by_flavor(hour(start), hour(end)) if one.flavor == flavor]
    assert found.is_balanced
    return {category.value: amount for category, amount in found.parts.items() if amount}


def use_without_allocation(
    start: float, end: float, node: str, name: str, kind: str, slot: str = "", count: int = 1
) -> None:
    slot = slot or f"{LOCAL}/pod:1/{name}"
    use = Use(slot, node, kind, name, count, "Pod", "trainer", "1", "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(start), 1, estimated=False)])
    foreign.end(LOCAL, "1", [slot], hour(end), 2, estimated=False)


def test_what_nobody_held_is_idle():
    record(RESOURCES, 0)
    used(hour(0), hour(5), 3)
    assert hours("l40s") == {"held": 15, "idle": 65}


def test_a_hold_beyond_the_window_counts_within_it():
    record(RESOURCES, 0)
    used(hour(-5), None, 2)
    assert hours("l40s", 1, 2) == {"held": 2, "idle": 6}


def test_the_gpus_of_a_node_that_is_not_ready_are_unavailable_but_what_is_held_stays_held():
    record(GPUS, 0)
    hold_gpu("gpu-0", 0, 10)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS}, 4)
    assert hours("h100") == {"held": 10, "idle": 4, "unavailable": 6}


def test_what_is_not_offered_is_unavailable():
    record(RESOURCES, 0, offered=False)
    assert hours("l40s") == {"unavailable": 80}


def test_what_has_only_hidden_offerings_is_unavailable_while_they_are():
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0), hour(10), 3)
    hidden = [Offering.objects.get(key="l40s/whole"), *Offering.objects.filter(flavor__name="h100")]
    with clock.frozen(hour(-1)):
        for flavor in {one.flavor for one in hidden}:
            always(flavor)
    for at, is_hidden in ((2, True), (5, False)):
        with clock.frozen(hour(at)):
            for one in hidden:
                hide_offering(SYSTEM, one, hidden=is_hidden)
    assert hours("l40s") == {"held": 30, "unavailable": 15, "idle": 35}
    assert hours("h100") == {"unavailable": 6, "idle": 14}


def test_a_resource_is_idle_while_another_offering_of_it_is_not_hidden():
    record(RESOURCES, 0)
    whole = Offering.objects.get(key="l40s/whole")
    values = {"flavor": whole.flavor, "pool": whole.pool, "resource": whole.resource, "requests": {}}
    Offering.objects.create(key="l40s/other", kind="whole", isolation="full", hidden=True, **values)
    always(whole.flavor)
    assert hours("l40s") == {"idle": 80}


def test_pods_without_an_allocation_are_unmanaged():
    record(RESOURCES, 0)
    use_without_allocation(2, 6, "l40s-0", "nvidia.com/gpu", RESOURCE)
    assert hours("l40s") == {"unmanaged": 4, "idle": 76}


def test_a_pod_uses_at_most_what_its_node_has_whatever_it_requests():
    record(RESOURCES, 0)
    use_without_allocation(2, 6, "l40s-0", "nvidia.com/gpu", RESOURCE, count=10**18)
    assert hours("l40s") == {"unmanaged": 16, "idle": 64}


def test_claims_without_an_allocation_are_unmanaged():
    record(GPUS, 0)
    use_without_allocation(2, 6, "h100-0", "gpu-1", GPU, f"{LOCAL}/h100-0/gpu-1")
    assert hours("h100") == {"unmanaged": 4, "idle": 16}


def test_what_a_queued_job_is_charged_for_is_not_unmanaged_too():
    record(GPUS, 0)
    use_without_allocation(2, 8, "h100-0", "gpu-1", GPU, f"{LOCAL}/h100-0/gpu-1")
    hold_gpu("gpu-1", 3, 7, member="")
    assert hours("h100") == {"held": 4, "unmanaged": 2, "idle": 14}


def test_what_no_offered_slice_fits_is_stranded():
    """Beside a 1g.10gb at memory slice 0, a GPU of which only whole GPUs are offered can give nothing."""
    flavor = Offering.objects.get(key="h100/whole").flavor
    flavor.partitionable = True
    flavor.save()
    always(flavor)
    record(GPUS, 0)
    hold_gpu("gpu-0-mig-1g10gb-19-0", 0, 10, gpu_share=Fraction(1, 7))
    assert hours("h100") == {"held": Fraction(10, 7), "stranded": Fraction(60, 7), "idle": 10}


@pytest.mark.parametrize(
    ("hidden", "parts"),
    [
        (False, {"idle": Fraction(20, 7), "stranded": Fraction(10, 7)}),
        (True, {"stranded": Fraction(30, 7)}),
    ],
)
def test_of_a_gpu_that_is_divided_beforehand_only_its_offered_slices_are_idle(hidden: bool, parts: dict[str, Fraction]):
    """Three 2g.20gb are 6/7 of a GPU, and nothing fits beside them. Two are held."""
    offer("2g.20gb", Fraction(2, 7))
    Offering.objects.filter(key="h100/mig-2g.20gb").update(hidden=hidden)
    always(Offering.objects.get(key="h100/whole").flavor)
    layout = [f"gpu-0-mig-2g20gb-14-{start}" for start in (0, 2, 4)]
    record({Unit("h100-0", GPU, "gpu-0"): FoundUnit(1, 1, labels={"layout": layout})}, 0)
    for name in layout[:2]:
        hold_gpu(name, 0, 10, gpu_share=Fraction(2, 7))
    assert hours("h100") == {"held": Fraction(40, 7), **parts}


def test_what_is_stranded_now_is_told_with_the_slice_that_would_fit():
    flavor = Offering.objects.get(key="h100/whole").flavor
    flavor.partitionable = True
    flavor.save()
    always(flavor)
    record(GPUS, 0)
    with clock.frozen(hour(5)):
        assert stranded_gpus.current() == []
    for n in range(2):
        hold_gpu(f"gpu-{n}-mig-1g10gb-19-0", 6, None, gpu_share=Fraction(1, 7))
    with clock.frozen(hour(7)):
        assert stranded_gpus.current() == [StrandedGpus("h100", "1g.10gb", Fraction(12, 7), 2)]
        window = f"/costs/fleet?window={hour(0):%FT%TZ},{hour(7):%FT%TZ}"
        page = text(browser_of(person(platform_role="auditor")).get(window))
    assert "1.71 GPUs of h100 are stranded now, on 2 GPUs: a 1g.10gb would fit, and is not offered." in page


def test_use_beyond_the_capacity_that_is_left_stays_charged():
    record(RESOURCES, 0)
    used(hour(0), hour(10), 8)
    gone = {unit: FoundUnit(2, 2) for unit in RESOURCES}
    record(gone, 5)
    assert hours("l40s") == {"held": 80, "variance": -20}


def total(*cuts: float) -> dict[tuple[str, str], Fraction]:
    """Return the GPU-hours by flavor and category of the windows between these hours together."""
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for start, end in pairwise(cuts):
        for one in hours_by_flavor.by_flavor(hour(start), hour(end)):
            assert one.is_balanced
            for category, amount in one.parts.items():
                found[one.flavor, category.value] += amount
    return {key: amount for key, amount in found.items() if amount}


ONE_GPU = {Unit("h100-0", GPU, "gpu-0"): FoundUnit(1, 1)}
ONE_NODE = Unit("l40s-0", RESOURCE, "nvidia.com/gpu")


def test_windows_add_up_when_units_get_another_flavor_and_when_their_node_goes():
    record({ONE_NODE: FoundUnit(4, 4, labels={"replicas": "2"})}, 0, flavor="l40s-time-slicing-2", gpus=ONE / 2)
    use_without_allocation(1, 8, "l40s-0", "nvidia.com/gpu", RESOURCE)
    record({ONE_NODE: FoundUnit(4, 4, labels={"replicas": "1"})}, 5)
    capacity.record(LOCAL, {"l40s-0": SEEN}, lambda before: {}, hour(7))
    assert total(0, 10) == total(0, 5, 6, 10)
    assert total(0, 10)["l40s-time-slicing-2", "unmanaged"] == 2
    assert total(0, 10)["l40s", "unmanaged"] == 2


def test_what_is_held_is_what_the_usage_ledger_charges_beside_whatever_else_uses_the_gpu():
    record(ONE_GPU, 0)
    offer("4g.40gb", Fraction(4, 7))
    offer("3g.40gb", ONE / 2)
    slot = f"{LOCAL}/h100-0/gpu-0-mig-4g40gb-5-0"
    use_without_allocation(0, 5, "h100-0", "gpu-0-mig-4g40gb-5-0", GPU, slot)
    hold_gpu("gpu-0-mig-3g40gb-9-4", 2, 10, gpu_share=ONE / 2)
    assert total(0, 10) == total(0, 3, 5, 10)
    assert total(0, 10)["h100", "held"] == 4


def test_a_later_catalogue_changes_nothing_of_what_was_held():
    """A quarter of a time-sliced GPU stays one if the GPU is shared by two later, or by nobody."""
    record(ONE_GPU, 0)
    hold_gpu("gpu-0/share-0", 0, 4, gpu_share=ONE / 4, kind="shared")
    whole = Offering.objects.filter(key="h100/whole")
    for replicas in (4, 2):
        whole.update(kind="shared", replicas=replicas, gpu_share_numerator=1, gpu_share_denominator=replicas)
        assert hours("h100", 0, 4) == {"held": 1, "idle": 3}


def test_before_capacity_was_recorded_there_was_what_was_held():
    used(hour(0), None, 2)
    record(RESOURCES, 5)
    assert hours("l40s") == {"held": 20, "idle": 30}


def test_reading_takes_the_same_queries_however_many_intervals():
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0), hour(5))

    def grow():
        for _ in range(49):
            used(hour(0), hour(5))

    assert_constant(lambda: accounts.read(hour(0), hour(10)), grow, at_most=10)


@pytest.mark.parametrize(
    ("end", "covers", "left"),
    [
        (10, [], [(0, 10)]),
        (10, [(2, 4)], [(0, 2), (4, 10)]),
        (10, [(0, 4), (3, 6)], [(6, 10)]),
        (10, [(-5, None)], []),
        (10, [(12, 14)], [(0, 10)]),
        (10, [(2, None)], [(0, 2)]),
        (10, [(8, 12)], [(0, 8)]),
        (0, [], []),
    ],
)
def test_uncovered_is_what_is_left_beside_what_covers(end: Any, covers: Any, left: Any):
    found = accounts.uncovered(hour(0), hour(end), [(hour(a), None if b is None else hour(b)) for a, b in covers])
    assert found == [(hour(a), hour(b)) for a, b in left]


def test_platform_staff_see_the_fleets_hours_and_members_do_not(member: User):
    record(RESOURCES, 0)
    used(hour(0), hour(5), 3)
    window = f"/costs/fleet?window={hour(0):%FT%TZ},{hour(10):%FT%TZ}"
    [line] = browser_of(person(platform_role="auditor")).get(window).context["fleet_lines"]
    assert (line.day, line.flavor, line.capacity) == ("2026-11-02", "l40s", "80.00")
    assert line.amounts[0] == ("Held", "15.00")
    assert [(part.category, part.x, part.width) for part in line.bar] == [("held", 0, 188), ("idle", 188, 812)]
    assert "GPU-hours of the fleet" not in text(browser_of(member).get(window))


def test_a_window_ahead_has_no_hours():
    record(RESOURCES, 0)
    ahead = "/costs/fleet?window=2126-01-01T00:00:00Z,2126-01-02T00:00:00Z"
    assert "No capacity was recorded" in text(browser_of(person(platform_role="operator")).get(ahead))


def test_long_windows_have_costs_only():
    record(RESOURCES, 0)
    page = text(browser_of(person(platform_role="operator")).get("/costs/fleet?window=90d"))
    assert "Choose at most 31 days" in page


def test_each_day_has_a_row_for_each_flavor_the_newest_first():
    record({**RESOURCES, **GPUS}, 0)
    used(hour(20), hour(30), 3)
    found = fleet_hours.by_flavor_and_day(hour(12), hour(48)) or []
    assert [(one.start, one.flavor, int(one.capacity), int(one.parts[Category.HELD])) for one in found] == [
        (hour(24), "h100", 48, 0),
        (hour(24), "l40s", 192, 18),
        (hour(12), "h100", 24, 0),
        (hour(12), "l40s", 96, 12),
    ]


def test_a_fleet_has_the_same_hours_whatever_is_rolled_up():
    record({**RESOURCES, **GPUS}, 0)
    used(hour(1.5), hour(40.25), 3)
    hold_gpu("gpu-0", 3.1, None)
    window = hour(0.5), hour(60.75)
    before = fleet_hours.by_flavor_and_day(*window)
    for start, end in ((2, 5), (5, 30), (24, 48), (50, 61)):
        rollups.roll_up(LOCAL, hour(start), hour(end))
        DirtyHour.objects.filter(hour=hour(28)).delete()
        assert fleet_hours.by_flavor_and_day(*window) == before
    used(hour(28), hour(29))
    [changed] = [one for one in fleet_hours.by_flavor_and_day(*window) or [] if one not in (before or [])]
    assert (changed.start, changed.flavor, changed.parts[Category.HELD]) == (hour(24), "l40s", Fraction(199, 4))


def test_more_than_a_week_of_the_ledger_is_not_read():
    record(RESOURCES, 0)
    assert fleet_hours.by_flavor_and_day(hour(-1000), hour(7 * 24)) is not None
    assert fleet_hours.by_flavor_and_day(hour(0), hour(7 * 24 + 1)) is None
    rollups.roll_up(LOCAL, hour(0), hour(2))
    assert fleet_hours.by_flavor_and_day(hour(0), hour(7 * 24 + 1)) is not None
    window = f"/costs/fleet?window={hour(0):%FT%TZ},{hour(240):%FT%TZ}"
    assert "not rolled up yet" in text(browser_of(person(platform_role="operator")).get(window))
