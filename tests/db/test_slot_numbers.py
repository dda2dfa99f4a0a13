"""Numbers of live allocations: the smallest free one, and after a restore those on the cluster."""

import pytest

from allocations.cluster import names
from allocations.lifecycle import slot_numbers
from allocations.models import Allocation, MirrorObject
from portal.core import clock
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_a_number_is_given_again_once_its_allocation_has_ended(team, project) -> None:
    fleet(team)
    first, second = (allocate(person(team), project, name=name) for name in ("first", "second"))
    assert (first.number, second.number) == (0, 1)
    Allocation.objects.filter(pk=first.pk).update(desired="released", ended_at=clock.now(), outcome="released")
    assert allocate(person(team), project, name="third").number == 0


@pytest.mark.parametrize("listed", [False, True], ids=["ended since the backup", "holds it itself"])
def test_an_adopted_allocation_has_its_number_unless_the_quota_of_it_is_anothers(team, project, listed: bool) -> None:
    fleet(team)
    restored = allocate(person(team), project, name="restored")
    if listed:
        MirrorObject.objects.create(
            cluster_id=LOCAL,
            kind="ResourceQuota",
            namespace=project.namespace,
            name=names.hold_slot(restored.number),
            uid="u",
            resource_version=1,
            facts={"slices": {"restored": {}}},
            seen_at=clock.now(),
        )
    given = slot_numbers.number_of_recovered(project, restored.number)
    restored.refresh_from_db()
    assert (given, restored.number) == ((1, 0) if listed else (0, 1))
