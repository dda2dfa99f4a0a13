"""What people see who have nothing yet: first steps on home, and a way on from each empty list."""

import re

import pytest

from tests.support.pages import browser_of, ended, requested, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a[^>]*href="([^"]+)"')
EMPTY = re.compile(r'<section class="card empty">(.*?)</section>', re.DOTALL)


def steps(page):
    return LINK.findall(page.partition('<ol class="first-steps">')[2].partition("</ol>")[0])


def test_home_of_who_has_never_requested_has_three_steps(fleet, browser):
    assert steps(text(browser.get("/"))) == [
        "/request",
        "/docs/how-to/connect.html",
        "/docs/how-to/extend-and-release.html",
    ]


def test_home_of_who_has_requested_before_has_none(fleet, member, project, browser):
    ended(requested(member, project))
    page = text(browser.get("/"))
    assert "You have no active or queued GPUs." in page
    assert steps(page) == []


def test_home_of_who_is_in_no_team_names_whom_to_ask(fleet):
    operator = person(platform_role="operator")
    newcomer = person()
    page = text(browser_of(newcomer).get("/"))
    assert f"Ask {operator.username} to add {newcomer.username}." in page
    assert len(steps(page)) == 3


FOR_ALL = (
    *("/allocations", "/allocations?phase=ended&mine=1", "/teams", "/people", "/people?q=none"),
    *("/costs", "/costs/savings"),
)
FOR_PLATFORM = ("/fleet", "/fleet?node=none", "/flavors", "/tenants", "/kueue", "/audit?q=none")


@pytest.mark.parametrize(
    ("role", "path"),
    [("", path) for path in FOR_ALL] + [("operator", path) for path in (*FOR_ALL, *FOR_PLATFORM)],
)
def test_an_empty_list_leads_on(db, role, path):
    found = EMPTY.findall(text(browser_of(person(platform_role=role)).get(path)))
    assert found
    assert [part for part in found if not LINK.search(part)] == []
