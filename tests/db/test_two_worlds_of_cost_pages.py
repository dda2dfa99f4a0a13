"""Nobody learns of another team's use from any page of costs, or from what it loads or links to: in two worlds that
differ in nothing else, each is the same byte for byte.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client

from portal.core import clock, heartbeat
from portal.tenants import members
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team
from quotas.costs import saved_views
from tests.support.fleet import allocate
from tests.support.pages import HTMX, browser_of, held
from tests.support.people import person
from tests.support.two_worlds import NOW, OTHERS, OWN, ROLES, SECRETS, WINDOW, another_world, asked_by, one_world

pytestmark = pytest.mark.django_db
PAGES = [
    *("/costs", "/costs?window=month&aggregate=team,flavor", f"/costs?{WINDOW}&aggregate=member&sort=change&page=2"),
    *(f"/costs?{WINDOW}&aggregate=team&accumulate={step}" for step in ("hour", "week", "month")),
    *("/costs?window=never", "/costs?aggregate=colour", "/costs?filter=team%3A", "/costs?sort=x"),
    *("/costs/mine", "/costs/savings", "/costs/savings?window=30d&idle_hours=1", "/costs/fleet", "/costs/assets"),
    *("/costs/assets?sort=idle", "/costs/proof", "/costs/proof?failing=1", "/prices", "/prices?all=1", "/bills"),
    *("/teams/vision", "/teams/vision/costs", "/teams/language", "/teams/language/costs"),
    *("/projects/vision-train/costs", "/projects/language-train/costs", "/projects/none/costs"),
    *(f"/costs/allocations/{holder}" for holder in (OWN, OTHERS)),
    *(f"/{kind}/{holder}/costs" for kind in ("allocations", "jobs") for holder in (OWN, OTHERS)),
    "/banners",
]
PARTS = [
    *("/", "/banners", "/costs/mine", "/teams/vision/costs"),
    *("/teams/language/costs", "/projects/vision-train/costs", "/projects/language-train/costs"),
    *(f"/{kind}/{holder}/costs" for kind in ("allocations", "jobs") for holder in (OWN, OTHERS)),
]
"""What htmx loads. The rest of home says how many GPUs are free, which is for all to know."""
OF_THE_ANSWER = re.compile(rb'(?<=name="csrfmiddlewaretoken" value=")[^"]*|(?<=nonce=")[^"]*|"request_id": ?"[^"]*"')
REST_LINK = re.compile(rb'href="(/api/v1/[^"]*)"')
Answers = dict[tuple[str, str], tuple[int, bytes, dict[str, str]]]


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team, project: Project, settings: Any) -> Iterator[None]:
    settings.PAGE_REQUESTS_PER_MINUTE = settings.API_REQUESTS_PER_MINUTE = 1_000_000
    one_world(team, other_team)
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    with clock.frozen(NOW):
        yield


def reader(team: Team, project: Project, role: str) -> Client:
    """Return the browser of a person who runs an allocation and has a saved view."""
    user = person(team, "member")
    held(allocate(user, project), hours=2)
    saved_views.save(user, f"of a {role}", "aggregate=member&window=30d", team)
    members.add(SYSTEM, team, user.username, role)
    return browser_of(user)


def answer(browser: Client, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
    found: Any = browser.get(path, headers=headers)
    body = b"".join(found.streaming_content) if found.streaming else found.content
    kept = {name: found[name] for name in ("ETag", "Location", "Content-Disposition") if name in found}
    return found.status_code, OF_THE_ANSWER.sub(b"", body), kept


def answers(browser: Client, pages: Iterable[str] = PAGES, parts: Iterable[str] = PARTS) -> Answers:
    """Return what the pages answer, whole and as the parts that htmx loads, and what they link to in REST."""
    found = {(path, "page"): answer(browser, path, {}) for path in pages}
    found |= {(path, "part"): answer(browser, path, HTMX) for path in parts}
    linked = {unescape(link.decode()) for _, body, _ in found.values() for link in REST_LINK.findall(body)}
    return found | {(path, "link"): answer(browser, path, {}) for path in sorted(linked)}


def differences(before: Answers, after: Answers) -> list[tuple[str, str]]:
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def test_pages_and_what_they_link_to_are_alike(team: Team, other_team: Team, project: Project) -> None:
    browsers = {role: reader(team, project, role) for role in ROLES}
    stranger = person(other_team)
    pages = {role: [*PAGES, *(f"/costs?{WINDOW}&{query}" for query in asked_by(role))] for role in ROLES}
    before = {role: answers(browser, pages[role]) for role, browser in browsers.items()}
    another_world(other_team, stranger)
    for role, browser in browsers.items():
        after = answers(browser, pages[role])
        assert differences(before[role], after) == []
        assert [key for key, (status, body, _) in after.items() if status == 200 and tells(key[0], body)] == []
        statuses = {key: status for key, (status, _, _) in after.items()}
        assert [statuses[f"/costs/allocations/{holder}", "page"] for holder in (OWN, OTHERS)] == [200, 404]
        assert [statuses[f"/teams/{slug}/costs", "part"] for slug in ("vision", "language")] == [200, 404]
        assert sum(path.startswith("/api/v1/costs/export?") for path, _ in after) > len(asked_by(role))
        assert (b"Teams you lead" in after["/", "part"][1]) is (role == "lead")


def tells(path: str, body: bytes) -> bool:
    """Return whether an answer has a name of the other team that is not in the question."""
    return any(word.encode() in body and word not in path for word in SECRETS)


def test_who_sees_the_fleet_sees_the_difference(team: Team, other_team: Team) -> None:
    browser, stranger = browser_of(person(platform_role="auditor")), person(other_team)
    pages = ["/costs/assets", "/costs/fleet", "/teams/language/costs", f"/costs/allocations/{OTHERS}"]
    pages += [f"/costs?{WINDOW}&aggregate=team"]
    before = answers(browser, pages, [])
    another_world(other_team, stranger)
    assert {path for path, _ in differences(before, answers(browser, pages, []))} >= {*pages}
