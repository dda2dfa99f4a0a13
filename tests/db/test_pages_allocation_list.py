"""The list of allocations: order, chosen columns, CSV, and what is done to several of them at once."""

import csv
import io

import pytest

from allocations.models import Allocation
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.pages import browser_of, ended, held, pod, requested, text
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/allocations"


def in_order(response) -> list[str]:
    return [line.card.row.name for line in response.context["found"].lines]


def rows_of_csv(response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(response))))


@pytest.fixture
def three(fleet, member, project):
    """Return three held allocations of 1, 3 and 2 slices."""
    return [held(requested(member, project, count=count, name=name)) for name, count in (("b", 1), ("a", 3), ("c", 2))]


@pytest.mark.parametrize(
    ("sort", "names"),
    [("name", "abc"), ("-name", "cba"), ("-count", "acb"), ("rate", "bca"), ("-rate", "acb"), ("secret", "cab")],
)
def test_it_sorts_by_any_column_of_the_address(three, browser, sort, names):
    assert "".join(in_order(browser.get(URL, {"sort": sort}))) == names


def test_the_head_tells_the_order(three, browser):
    page = text(browser.get(URL, {"sort": "name"}))
    assert 'aria-sort="ascending"' in page
    assert "?sort=-name" in page


def test_sorting_by_cost_needs_the_same_queries_for_one_allocation_and_for_many(fleet, member, project, browser):
    held(requested(member, project))

    def grow():
        for number in range(26):
            held(requested(member, project, name=f"more-{number}"))

    assert_constant(lambda: browser.get(URL, {"sort": "-cost"}), grow, at_most=11)


def test_columns_that_a_person_chose_are_kept_for_that_person_alone(three, member, team, browser):
    done = browser.post(f"{URL}/columns", {"column": ["labels", "cost", "nonsense"], "next": "/allocations?mine=1"})
    assert done["Location"] == "/allocations?mine=1"
    member.refresh_from_db()
    assert member.columns == {"allocations": ["labels", "cost"]}
    page = text(browser.get(URL))
    assert '<td data-label="Labels">' in page
    assert '<td data-label="Project">' not in page
    assert '<td data-label="Project">' in text(browser_of(person(team)).get(URL))


def test_the_csv_has_what_is_shown_and_is_named_by_it(three, member, project, browser):
    ended(held(requested(member, project, name="past")))
    response = browser.get(f"{URL}/csv", {"sort": "name", "mine": "1"})
    assert "allocations-not-ended-mine-20" in response["Content-Disposition"]
    found = rows_of_csv(response)
    assert [row["name"] for row in found] == ["a", "b", "c"]
    assert found[0]["count"] == "3"
    assert found[0]["id"] == str(three[1].pk)
    assert "labels" not in found[0]
    everything = browser.get(f"{URL}/csv", {"phase": ""})
    assert "allocations-all-20" in everything["Content-Disposition"]
    assert "past" in {row["name"] for row in rows_of_csv(everything)}


def test_a_csv_has_nothing_of_other_teams(three, other_team):
    assert rows_of_csv(browser_of(person(other_team)).get(f"{URL}/csv")) == []


def test_a_lead_releases_several_after_a_preview_that_names_owners_and_pods(three, team, member):
    pod(three[0].project, three[0], "train-1")
    lead = browser_of(person(team, "lead"))
    ids = [str(row.pk) for row in three[:2]]
    page = text(lead.get(f"{URL}/several/release", {"id": ids}))
    assert "Release 2 allocations?" in page
    assert member.username in page
    assert "train-1" in page
    assert Allocation.objects.filter(desired="released").count() == 0
    done = lead.post(f"{URL}/several/release", {"id": ids, "reason": "the release of a model"}, follow=True)
    assert "Release of 2 allocations requested." in text(done)
    assert {row.name for row in Allocation.objects.filter(desired="released")} == {"a", "b"}


def test_what_one_may_not_release_stays_and_is_named(three, team):
    mate = person(team)
    project = three[0].project
    own = held(requested(mate, project, name="own"))
    browser = browser_of(mate)
    ids = [str(own.pk), str(three[0].pk)]
    page = text(browser.get(f"{URL}/several/release", {"id": ids}))
    assert "Release 1 allocation?" in page
    assert "only its owner or a lead may" in page
    done = text(browser.post(f"{URL}/several/release", {"id": ids}, follow=True))
    assert "Release of 1 allocation requested." in done
    assert "Not released: b (" in done
    assert [row.name for row in Allocation.objects.filter(desired="released")] == ["own"]


def test_several_are_extended_by_the_same_time(three, browser):
    before = {row.pk: row.hours for row in three}
    ids = [str(row.pk) for row in three[:2]]
    assert "Extend 2 allocations?" in text(browser.get(f"{URL}/several/extend", {"id": ids}))
    wrong = browser.post(f"{URL}/several/extend", {"id": ids, "length": "custom"})
    assert wrong.status_code == 400
    done = text(browser.post(f"{URL}/several/extend", {"id": ids, "length": "2"}, follow=True))
    assert "2 allocations extended." in done
    added = {row.name: row.hours - before[row.pk] for row in Allocation.objects.all()}
    assert added == {"a": 2, "b": 2, "c": 0}


def test_what_cannot_be_seen_is_not_there(three, other_team):
    browser = browser_of(person(other_team, "lead"))
    for action in ("release", "extend"):
        page = text(browser.get(f"{URL}/several/{action}", {"id": [str(three[0].pk), "no-id"]}, follow=True))
        assert "Choose at least one allocation." in page


def test_the_preview_needs_the_same_queries_for_one_and_for_many(three, member, project, browser):
    ids = [str(three[0].pk)]

    def grow():
        ids.extend(str(held(requested(member, project, name=f"more-{n}")).pk) for n in range(20))

    assert_constant(lambda: browser.get(f"{URL}/several/release", {"id": ids}), grow, at_most=14)


def test_a_project_with_no_allocation_that_lives_offers_the_ended_ones(fleet, team, member, browser):
    tenants.create_project(SYSTEM, team, "empty", "Empty")
    assert "Show ended ones" in text(browser.get(URL))
