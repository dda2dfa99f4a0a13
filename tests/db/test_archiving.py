"""Archiving as intent: what it ends, what it refuses from then on, and what its preview shows."""

from fractions import Fraction

import pytest

from allocations.models import Allocation
from allocations.projects import archive
from allocations.requests import details
from portal.core.errors import Forbidden, Invalid, Refused
from portal.core.models import WorkItem
from portal.tenants.models import Project
from tests.support.fleet import allocate, fleet
from tests.support.pages import ended, held
from tests.support.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db):
    return person(platform_role="operator")


@pytest.fixture
def rows(team, project):
    """Create an active allocation and a queued one."""
    fleet(team)
    member = person(team)
    return held(allocate(member, project)), allocate(member, project)


def test_all_that_lives_in_it_is_told_to_end_and_looked_at(rows, project, operator):
    WorkItem.objects.all().delete()
    archive.archive(operator, project)
    assert set(Allocation.objects.values_list("desired", "ending")) == {("released", "person")}
    assert {row.transitions.get(type="end").reason for row in rows} == {"project_archived"}
    assert set(WorkItem.objects.values_list("target", flat=True)) == {
        "local/project:vision-train",
        *(f"local/allocation:{row.pk}" for row in rows),
    }


def test_nothing_is_asked_in_it_any_more(rows, project, operator, team):
    archive.archive(operator, project)
    with pytest.raises(Refused, match="is archived"):
        allocate(person(team), project)


def test_what_was_written_is_the_slug_or_is_refused_with_it(project):
    archive.require_confirmation(project, "vision-train")
    for wrong in ("", "vision", "Vision-Train", "vision-train "):
        with pytest.raises(Invalid, match="Write vision-train, the project's slug") as refusal:
            archive.require_confirmation(project, wrong)
        assert list(refusal.value.errors) == ["confirm"]


def test_archiving_twice_ends_nothing_twice(rows, project, operator):
    archive.archive(operator, project)
    archive.archive(operator, project)
    assert [row.transitions.filter(type="end").count() for row in rows] == [1, 1]


def test_it_is_not_taken_into_use_while_something_of_before_still_ends(rows, project, operator):
    archive.archive(operator, project)
    with pytest.raises(Refused, match="2 allocations of vision-train are still ending"):
        archive.unarchive(operator, project)
    for row in rows:
        ended(row)
    archive.unarchive(operator, project)
    assert Project.objects.get().archived_at is None


def test_a_lead_archives_nothing(rows, project, team):
    for act in (archive.preview, archive.archive, archive.unarchive):
        with pytest.raises(Forbidden):
            act(person(team, "lead"), project)
    assert Project.objects.get().archived_at is None


def test_its_preview_says_how_many_held_allocations_have_no_price(team, project):
    fleet(team, prices={"l40s": "1.10"})
    member = person(team)
    l40s, h100 = (held(allocate(member, project, offering)) for offering in ("l40s/whole", "h100/whole"))

    def cost(*held_rows):
        return archive.cost_per_hour(list(details.by_id(held_rows).values()))

    assert cost(l40s) == (Fraction("1.1"), 0)
    assert cost(l40s, h100) == (Fraction("1.1"), 1)
    assert cost(h100) == (None, 1)
    assert cost() == (0, 0)
