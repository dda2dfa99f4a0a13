"""Numbers of live allocations: the smallest free one, and after a restore those on the cluster."""

import pytest

from allocations.cluster import names
from allocations.lifecycle import slot_numbers
from allocations.models import Allocation, MirrorObject
from portal.core import clock
from portal.core.errors import Retryable
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import quotas_listed
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_a_number_is_given_again_once_its_allocation_has_ended(team, project) -> None:
    fleet(team)
    first, second = (allocate(person(team), project, name=name) for name in ("first", "second"))
    assert (first.number, second.number) == (0, 1)
    Allocation.objects.filter(pk=first.pk).update(desired="released", ended_at=clock.now(), outcome="released")
    assert allocate(person(team), project, name="third").number == 0


def list_in_own_quota(row: Allocation) -> None:
    """Mirror the hold quota of the allocation's number, which lists it."""
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ResourceQuota",
        namespace=row.project.namespace,
        name=names.hold_slot(row.number),
        uid="u",
        resource_version=1,
        facts={"slices": {row.name: {}}},
        seen_at=clock.now(),
    )


@pytest.mark.parametrize("listed", [False, True], ids=["ended since the backup", "holds it itself"])
def test_an_adopted_allocation_has_its_number_unless_the_quota_of_it_is_anothers(team, project, listed: bool) -> None:
    fleet(team)
    restored = allocate(person(team), project, name="restored")
    quotas_listed(7)
    if listed:
        list_in_own_quota(restored)
    given = slot_numbers.number_of_recovered(project, restored.number, 7)
    restored.refresh_from_db()
    assert (given, restored.number) == ((1, 0) if listed else (0, 1))


def test_no_number_is_given_by_quotas_as_they_were_before_the_lease(team, project) -> None:
    """Right after a restore, the mirror says that who had the number then has it still."""
    fleet(team)
    restored = allocate(person(team), project, name="restored")
    list_in_own_quota(restored)
    with pytest.raises(Retryable, match="not listed since revision 7"):
        slot_numbers.number_of_recovered(project, restored.number, 7)
    quotas_listed(6)
    with pytest.raises(Retryable, match="not listed since revision 7"):
        slot_numbers.number_of_recovered(project, restored.number, 7)
    restored.refresh_from_db()
    assert restored.number == 0
