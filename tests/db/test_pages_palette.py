"""The command palette: what each role finds in it, and that all of it opens."""

import json

import pytest

from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Offering
from tests.support.pages import browser_of, requested, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
OPERATORS_PAGES = {"Fleet", "Flavors", "Organization", "Kueue", "Audit log", "Bills"}


def asked(user, query=""):
    return json.loads(text(browser_of(user).get(f"/palette?q={query}")))


def titles(user, query=""):
    return [place["title"] for place in asked(user, query)["places"]]


@pytest.fixture
def others_project(other_team):
    return tenants.create_project(SYSTEM, other_team, "language-train", "Training")


def test_a_member_finds_pages_own_allocations_projects_and_offerings(fleet, team, member, project):
    requested(member, project, name="training")
    requested(person(team), project, name="of-a-colleague")
    found = titles(member)
    assert {"My GPUs", "Request", "Costs", "Queue of vision", "Docs", "training", "vision-train", "l40s/whole"} <= set(
        found
    )
    assert "of-a-colleague" not in found
    assert len(set(found)) == len(found)


def test_what_a_person_must_not_see_is_not_in_it(fleet, member, others_project):
    found = titles(member)
    assert OPERATORS_PAGES & set(found) == set()
    assert not [title for title in found if "language" in title]


def test_an_operator_finds_the_pages_of_operators_and_every_project(fleet, member, project, others_project):
    found = set(titles(person(platform_role="operator")))
    assert found >= OPERATORS_PAGES | {"vision-train", "language-train"}


def test_no_two_pages_have_one_name(fleet):
    pages = [place["title"] for place in asked(person(platform_role="operator"))["places"] if "Page" in place["detail"]]
    assert len(pages) == len({*pages})


@pytest.mark.parametrize("role", ["viewer", ""], ids=["viewer", "no team"])
def test_who_may_not_request_finds_no_offering(fleet, team, role):
    found = titles(person(team, role) if role else person())
    assert "Request" not in found
    assert "l40s/whole" not in found


def test_a_hidden_offering_is_not_in_it(fleet, member, project):
    Offering.objects.filter(key="l40s/whole").update(hidden=True)
    assert "l40s/whole" not in titles(member)


@pytest.mark.parametrize("role", ["viewer", "member", "lead", "operator", "auditor", "no team"])
def test_everything_in_it_opens(fleet, team, project, others_project, settings, tmp_path, role):
    (tmp_path / "index.html").touch()
    settings.DOCS_ROOT = tmp_path
    is_platform = role in ("operator", "auditor")
    user = person(platform_role=role) if is_platform else person() if role == "no team" else person(team, role)
    if role in ("member", "lead"):
        requested(user, project, name="training")
    browser = browser_of(user)
    closed = {}
    for place in asked(user)["places"]:
        status = browser.get(place["url"], follow=True).status_code
        if status != 200:
            closed[place["url"]] = status
    assert closed == {}


def test_what_is_left_out_is_found_by_its_name(fleet, team, member, project, monkeypatch):
    monkeypatch.setattr("frontend.places.MOST", 1)
    tenants.create_project(SYSTEM, team, "zebra", "Zebra")
    whole = asked(member)
    assert not whole["is_complete"]
    assert "zebra" not in [place["title"] for place in whole["places"]]
    assert "zebra" in titles(member, "ZEB")


def test_who_is_not_signed_in_is_led_to_sign_in(client):
    assert client.get("/palette")["Location"] == "/login?next=/palette"


def test_single_keys_are_turned_off_and_on_again(fleet, browser):
    back = browser.post("/shortcuts", {"keys": "off", "next": "/costs"})
    assert back["Location"] == "/costs"
    assert 'data-keys="off"' in text(browser.get("/"))
    browser.post("/shortcuts", {"keys": "on", "next": "//elsewhere.example"})
    assert 'data-keys="off"' not in text(browser.get("/"))


def test_a_choice_never_leads_to_another_site(fleet, browser):
    assert browser.post("/shortcuts", {"keys": "off", "next": "//elsewhere.example"})["Location"] == "/"
