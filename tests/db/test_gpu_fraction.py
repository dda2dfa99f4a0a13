"""The fraction of its GPU that each held device takes, and that no device is held twice at once."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from django.db.models import F

from allocations.domain.objects import Slice
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile.metering import gpu_fraction
from portal.tenants.models import Project, Team, User
from quotas.catalog.layouts import placements
from quotas.catalog.models import Offering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld
from tests.support.divisible_fleet import NOW, member_of
from tests.support.fleet import allocate
from tests.support.mig_facts import H100, device
from tests.support.mig_layouts import maximal_layouts
from tests.support.quotas import used

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(team: Team, project: Project) -> User:
    return member_of(team)


def claimed(member: User, project: Project) -> Allocation:
    """Hold devices by a custom claim, whose devices the scheduler chooses."""
    row = asked(member, project, "whole")
    row.offering = Offering.objects.select_related("flavor").get(key="h100/claim")
    return row


def asked(member: User, project: Project, offering: str) -> Allocation:
    return spec_of_row.rows().get(pk=allocate(member, project, f"h100/{offering}").pk)


def held(name: str, node: str = "h100-0", **values: Any) -> Slice:
    return Slice(slot=f"{node}/{name}", node=node, device=name, **values)


def open_interval(name: str, share: Fraction) -> UsageInterval:
    """Open another holder's interval on a GPU of h100-0."""
    row = used(NOW, None, flavor="h100", kind="mig", gpu_share=share, node="h100-0")
    UsageInterval.objects.filter(pk=row.pk).update(slot=f"local/h100-0/{name}", cluster="local")
    return row


def test_a_slice_is_worth_what_its_offering_says(member, project):
    row = asked(member, project, "mig-3g.40gb")
    assert gpu_fraction.gpu_fractions([(row, held(device("gpu-0", "3g.40gb", 4)))]) == [Fraction(1, 2)]


def test_each_slice_of_a_layout_leaves_something_to_the_next(member, project):
    """So a slice for which nothing is left is one too many (``balance.check_uses``)."""
    row_of = {profile.name: asked(member, project, f"mig-{profile.name}") for profile in H100.profiles}
    for layout in maximal_layouts(H100):
        begins = [(row_of[one.profile], held(device("gpu-0", one.profile, one.start))) for one in placed(layout)]
        parts = gpu_fraction.gpu_fractions(begins)
        assert parts == [row.offering.gpu_share for row, _ in begins]
        assert sum(parts) - min(parts) < 1


def test_what_others_hold_of_a_gpu_changes_no_fraction(member, project):
    open_interval(device("gpu-0", "4g.40gb", 0), Fraction(4, 7))
    row = asked(member, project, "mig-3g.40gb")
    begins = [(row, held(device("gpu-0", "3g.40gb", 4))), (row, held(device("gpu-1", "3g.40gb", 4)))]
    assert gpu_fraction.gpu_fractions(begins) == [Fraction(1, 2), Fraction(1, 2)]


@pytest.mark.parametrize("other", ["gpu-0", device("gpu-0", "4g.40gb", 0)])
def test_a_device_that_overlaps_has_to_be_seen_gone_first(other, member, project):
    open_interval(other, Fraction(1, 2))
    row = asked(member, project, "mig-1g.10gb")
    with pytest.raises(SlotHeld):
        gpu_fraction.gpu_fractions([(row, held(device("gpu-0", "1g.10gb", 3)))])
    assert gpu_fraction.gpu_fractions([(row, held(device("gpu-1", "1g.10gb", 3)))]) == [Fraction(1, 7)]


@pytest.mark.parametrize(
    ("name", "share"),
    [("gpu-0", 1), (device("gpu-0", "1g.10gb", 3), Fraction(1, 7)), (device("gpu-0", "3g.40gb", 4), Fraction(1, 2))],
)
def test_of_an_own_claim_a_device_is_worth_what_its_own_offering_says(name, share, member, project):
    assert gpu_fraction.gpu_fractions([(claimed(member, project), held(name))]) == [share]


def test_a_device_that_the_geometry_does_not_know_is_entered_beside_others(member, project):
    """A driver is upgraded node by node; a device with another name must not stop the whole ledger."""
    open_interval(device("gpu-0", "1g.10gb", 0), Fraction(1, 7))
    assert gpu_fraction.gpu_fractions([(claimed(member, project), held("gpu-0-mig-1g24gb-99-1"))]) == [1]


def test_an_ended_interval_holds_nothing(member, project):
    open_interval("gpu-0", Fraction(1))
    UsageInterval.objects.update(end=F("start"), source_end={"kind": "test"})
    row = asked(member, project, "whole")
    assert gpu_fraction.gpu_fractions([(row, held("gpu-0"))]) == [1]


def test_of_a_gpu_that_is_not_divided_nothing_is_asked(member, project, django_assert_num_queries):
    row = asked(member, project, "whole")
    row.offering.flavor.partitionable = False
    with django_assert_num_queries(0):
        assert gpu_fraction.gpu_fractions([(row, held("gpu-0"))]) == [1]


def test_many_are_priced_by_one_query(member, project, django_assert_num_queries):
    row = asked(member, project, "mig-1g.10gb")
    begins = [(row, held(device("gpu-0", "1g.10gb", start))) for start in range(7)]
    with django_assert_num_queries(1):
        gpu_fraction.gpu_fractions(begins)


def placed(layout: Mapping[str, int]) -> Iterable[Any]:
    """Return placements on the GPU at which the whole layout fits."""

    def place(left: tuple[str, ...], there: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not left:
            return there
        for one in placements(H100, left[0]):
            if not any(one.overlaps(other) for other in there) and (found := place(left[1:], (*there, one))):
                return found
        return None

    names = sorted((p for p, n in layout.items() for _ in range(n)), key=lambda p: -H100.profile(p).size)
    return place(tuple(names), ()) or ()
