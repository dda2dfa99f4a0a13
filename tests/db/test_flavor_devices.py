"""How much fits is computed from the occupations of GPUs, without reading each GPU."""

import pytest
from pytest_django import DjangoAssertNumQueries

from allocations.capacity import flavor_devices
from allocations.capacity.packing import FlavorDevices
from portal.tenants.models import Team
from quotas.catalog.models import Device, Flavor
from tests.support.claim_rows import h100_node, hold_devices

pytestmark = pytest.mark.django_db
CUT = ("mig-3g40gb-9-0", "mig-1g10gb-19-4")


@pytest.fixture
def flavor(team: Team) -> Flavor:
    """Create eight GPUs: one held whole, two divided alike, one divided differently, one unhealthy, three free."""
    h100_node(team)
    hold_devices("gpu-0")
    hold_devices(*(f"gpu-1-{part}" for part in CUT), *(f"gpu-2-{part}" for part in reversed(CUT)))
    hold_devices("gpu-3-mig-2g20gb-14-2")
    Device.objects.filter(name="gpu-4").update(healthy=False)
    return Flavor.objects.get()


@pytest.mark.parametrize("empty", [False, True])
def test_by_states_as_much_fits_as_gpu_by_gpu(flavor: Flavor, *, empty: bool) -> None:
    there = flavor_devices.of_flavors([flavor])[flavor.pk]
    each = FlavorDevices(there.gpus, there.geometry)
    shapes = [flavor_devices.slice_shape(offering) for offering in flavor.offerings.select_related("flavor")]
    by_states = [there.total(shape, empty=empty) for shape in shapes]
    assert len(each.gpus) == 7
    assert by_states == [each.total(shape, empty=empty) for shape in shapes]
    assert max(by_states) > 0


def test_how_much_fits_is_one_query(flavor: Flavor, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    shapes = [flavor_devices.slice_shape(offering) for offering in flavor.offerings.select_related("flavor")]
    with django_assert_num_queries(1):
        there = flavor_devices.of_flavors([flavor])[flavor.pk]
        assert [there.total(shape) for shape in shapes] == [there.total(shape) for shape in shapes]
