"""Past hours are rated by what was recorded at their time: a later change of another input changes none of them."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from allocations.projects import organization
from portal.core import clock
from portal.core.errors import Refused
from portal.tenants import services as tenants
from portal.tenants import structure
from portal.tenants.actors import SYSTEM, System
from portal.tenants.models import Department, Team
from quotas.catalog import services as catalog
from quotas.catalog import versions
from quotas.catalog.models import Flavor, FlavorVersion, Offering, Pool
from quotas.costs import rollups, services
from quotas.limits import services as limits
from quotas.metering import balance, capacity
from quotas.metering.hours import HOUR
from quotas.metering.models import AccountHour, DirtyHour
from quotas.metering.units import GPU, FoundUnit, Unit, Value
from tests.support import hours_by_flavor
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, offer, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
SMALL = "1g.10gb"


@pytest.fixture(autouse=True)
def past(team: Team) -> Iterator[None]:
    """Record three hours of GPUs by DRA, in part divided, and of GPUs by device plugin; it is five o'clock."""
    with clock.frozen(hour(-1)):
        fleet(team)
        Flavor.objects.filter(name="h100").update(partitionable=True)
        offer(SMALL, Fraction(1, 7))
    record({**GPUS, **RESOURCES}, 0)
    hold_gpu(f"gpu-0-mig-{SMALL.replace('.', '')}-19-0", 0, 3, gpu_share=Fraction(1, 7), offering=f"h100/mig-{SMALL}")
    use_gpu_without_allocation(f"gpu-1-mig-{SMALL.replace('.', '')}-19-0", 0, 3)
    used(hour(0), None, 3)
    with clock.frozen(hour(5)):
        rollups.roll_up(LOCAL, hour(0), hour(3))
        DirtyHour.objects.all().delete()
        yield


def content() -> list[tuple[Any, ...]]:
    """Return the rolled-up accounts without their own keys."""
    columns = [field.attname for field in AccountHour._meta.concrete_fields if field.attname != "id"]
    return sorted(AccountHour.objects.order_by().values_list(*columns), key=repr)


def discovered(**values: Any) -> None:
    """Discover other values of the small slice."""
    Offering.objects.filter(key=f"h100/mig-{SMALL}").update(**values)
    versions.record(Flavor.objects.all())


def hide_small() -> None:
    catalog.hide_offering(SYSTEM, Offering.objects.get(key=f"h100/mig-{SMALL}"), hidden=True)


def hide_and_show_small() -> None:
    hide_small()
    catalog.hide_offering(SYSTEM, Offering.objects.get(key=f"h100/mig-{SMALL}"), hidden=False)


def hide_flavor() -> None:
    flavor = Flavor.objects.get(name="l40s")
    catalog.configure_flavor(SYSTEM, flavor, {"hidden": True, "cpu_millicores_per_gpu": None})
    capacity.add_values(
        LOCAL, capacity.open_units(LOCAL), {unit: Value("l40s", Fraction(1), offered=False) for unit in RESOURCES}
    )


def discover_another_part() -> None:
    discovered(gpu_share_numerator=1, gpu_share_denominator=4)


def discover_another_resource() -> None:
    Offering.objects.filter(key="l40s/whole").update(resource="nvidia.com/gpu.shared")
    versions.record(Flavor.objects.all())


def discover_another_layout() -> None:
    """By device plugin: the resource is worth another part of its GPUs from now on."""
    capacity.add_values(
        LOCAL, capacity.open_units(LOCAL), {unit: Value("l40s", Fraction(2, 7), offered=True) for unit in RESOURCES}
    )


def move_team() -> None:
    other = tenants.create_department(SYSTEM, "elsewhere", "Elsewhere")
    organization.change_team(SYSTEM, Team.objects.get(slug="vision"), {"department": other})


def move_department() -> None:
    above = tenants.create_department(SYSTEM, "above", "Above")
    organization.change_department(SYSTEM, Department.objects.exclude(slug="above").get(), {"parent": above})


def rename_team() -> None:
    structure.rename(System("test"), Team.objects.get(slug="vision"), "Sight")


def set_limit() -> None:
    limits.set_limit(SYSTEM, Team.objects.get(slug="vision"), Pool.objects.get(key="l40s/gpu"), 1)


def set_price() -> None:
    services.set_price(SYSTEM, "l40s", "9", "EUR", source="test")


CHANGES = [
    *(hide_small, hide_and_show_small, hide_flavor),
    *(discover_another_part, discover_another_resource),
    *(discover_another_layout, move_team, move_department, rename_team, set_limit, set_price),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_changes_no_hour_before_it(change: Callable[[], None]) -> None:
    before, parts = content(), hours_by_flavor.by_flavor(hour(0), hour(3))
    change()
    assert not DirtyHour.objects.filter(hour__lt=hour(4)).exists()
    assert hours_by_flavor.by_flavor(hour(0), hour(3)) == parts
    rollups.roll_up(LOCAL, hour(0), hour(3))
    assert content() == before
    assert [one.message for at in range(3) for one in balance.of_hour(LOCAL, hour(at)).failures] == []


def test_what_is_hidden_within_an_hour_is_stranded_from_then_on() -> None:
    """Seven small slices fit beside a foreign one and none beside it once they are hidden: only whole GPUs are left."""
    hold_gpu("gpu-0-mig-1g10gb-19-1", 5, None, gpu_share=Fraction(1, 7), offering=f"h100/mig-{SMALL}")
    with clock.frozen(hour(5.5)):
        hide_small()
    [found] = [one for one in hours_by_flavor.by_flavor(hour(5), hour(6)) if one.flavor == "h100"]
    amounts = {category.value: amount for category, amount in found.parts.items() if amount}
    assert amounts == {"held": Fraction(1, 7), "idle": Fraction(3, 7) + 1, "stranded": Fraction(3, 7)}
    assert found.is_balanced


def test_capacity_that_ends_before_the_catalogue_knew_it_marks_its_hours() -> None:
    """It counts as not offered from its start on, and did not count at all before."""
    unknown = {Unit("h100-1", GPU, "gpu-0"): FoundUnit(1, 1)}
    with clock.frozen(hour(1)):
        capacity.record(LOCAL, {"h100-1": SEEN}, lambda before: unknown, hour(1))
    with clock.frozen(hour(5) + HOUR / 6):
        rollups.roll_up(LOCAL, hour(1), hour(3))
        capacity.record(LOCAL, {"h100-1": SEEN}, lambda before: {}, hour(5))
    assert set(DirtyHour.objects.values_list("hour", flat=True)) == {hour(at) for at in range(1, 5)}


def test_a_flavor_has_a_version_for_each_change_and_none_without_one() -> None:
    known = FlavorVersion.objects.filter(flavor__name="h100").count()
    versions.record(Flavor.objects.all())
    assert FlavorVersion.objects.filter(flavor__name="h100").count() == known
    hide_small()
    assert FlavorVersion.objects.filter(flavor__name="h100").count() == known + 1


def test_what_is_hidden_before_a_flavor_has_a_version_was_offered_before() -> None:
    """As after an upgrade, until the inventory is read."""
    FlavorVersion.objects.all().delete()
    before = content()
    hide_small()
    rollups.roll_up(LOCAL, hour(0), hour(3))
    assert content() == before


def test_a_proposal_with_a_price_keeps_its_name() -> None:
    """Hours of its GPUs are rated by the price of that name."""
    flavor = Flavor.objects.get(name="l40s")
    Flavor.objects.filter(pk=flavor.pk).update(accepted=False)
    flavor.refresh_from_db()
    with pytest.raises(Refused, match="has a price"):
        catalog.configure_flavor(SYSTEM, flavor, {"name": "ada"})
