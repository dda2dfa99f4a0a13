"""/costs/savings: the page says what REST says, and offers to release what the person may."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from portal.core import clock
from portal.core.heartbeat import beat
from tests.support.fleet import allocate
from tests.support.fleet import fleet as make_fleet
from tests.support.hold_pods import recorded_since
from tests.support.pages import browser_of, held, text
from tests.support.people import client, person
from tests.support.queued import GPU, job
from tests.support.quotas import attribution, used

pytestmark = pytest.mark.django_db
PAGE = "/costs/savings"
NAMES = {"idle_hold": "Holds without pods"}


@pytest.fixture
def fleet(team, other_team):
    make_fleet(team, other_team)
    beat("worker")
    beat("watcher")
    recorded_since(0)


@pytest.fixture
def noon(fleet):
    with clock.frozen(clock.now().replace(hour=12, minute=0, second=0, microsecond=0)) as at:
        yield at


@pytest.fixture
def idle(noon, member, project):
    """Return an allocation that has been held for ten hours without a pod."""
    return held(allocate(member, project, name="train", count=2), hours=10)


def groups(user, query="window=2d"):
    answer = browser_of(user).get(f"{PAGE}?{query}")
    assert answer.status_code == 200
    return {group.kind: group for group in answer.context["groups"]}


@pytest.mark.parametrize("role", ["member", "operator"])
def test_the_page_has_the_numbers_of_rest(idle, member, noon, role):
    user = member if role == "member" else person(platform_role=role)
    used(noon - timedelta(hours=30), noon - timedelta(hours=9), 3, project="vision-old")
    shown = groups(user)
    body = client(user).get("/api/v1/costs/savings?window=2d").json()
    for total in body["totals"]:
        group = shown.pop(total["kind"])
        rows = [row for row in body["results"] if row["kind"] == total["kind"]]
        assert float(group.gpu_hours) == pytest.approx(float(total["gpu_hours"]), abs=0.005)
        if total["kind"] != "unpriced":
            assert float(group.cost.removesuffix(" EUR")) == pytest.approx(float(total["cost"]), abs=0.005)
        for line, row in zip(group.lines, rows, strict=True):
            assert float(line.gpu_hours) == pytest.approx(float(row["gpu_hours"]), abs=0.005)
            if row["cost_per_hour"]:
                assert float(line.per_hour.removesuffix(" EUR")) == pytest.approx(float(row["cost_per_hour"]), abs=0.01)
    assert shown == {}


def test_who_may_release_a_hold_is_offered_to(idle, member, team):
    address = reverse("release", args=[idle.pk])
    for user, offered in (
        *((member, True), (person(team, "lead"), True), (person(platform_role="operator"), True)),
        *((person(team), False), (person(team, "viewer"), False), (person(platform_role="auditor"), False)),
    ):
        page = text(browser_of(user).get(f"{PAGE}?window=2d"))
        assert reverse("allocation", args=[idle.pk]) in page
        assert (address in page) == offered


def test_a_hold_links_to_its_team(idle, member):
    [line] = groups(member)["idle_hold"].lines
    assert (line.subject.text, line.owner.url, line.per_hour) == ("vision-train / train", "/teams/vision", "2.20 EUR")


def test_a_job_that_uses_nothing_links_to_its_page(noon, member, project):
    uid = job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 2}})
    values = attribution(member="", project=project.slug, namespace=project.namespace, unused=True)
    used(noon - timedelta(hours=6), None, 2, uid, **{**vars(values), "gpu_share": values.gpu_share})
    [line] = groups(member)["idle_hold"].lines
    assert (line.subject.url, line.release) == (f"/jobs/{uid}", "")


def test_other_teams_see_nothing(idle, other_team):
    assert "idle_hold" not in groups(person(other_team))
    assert "No savings found" in text(browser_of(person()).get(PAGE))


@pytest.mark.parametrize("query", ["idle_hours=0", "idle_hours=x", "idle_hours=9999", "window=never", "window=200d"])
def test_what_the_page_cannot_show_is_refused_with_a_sentence(fleet, member, query):
    answer = browser_of(member).get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in text(answer)


def test_the_page_takes_as_many_statements_for_many_holds(idle, member, project, noon):
    browser, counts = browser_of(member), []
    for more in (1, 6):
        for _ in range(more):
            used(noon - timedelta(hours=8), None, project=project.slug)
        browser.get(f"{PAGE}?window=2d")
        with CaptureQueriesContext(connection) as statements:
            browser.get(f"{PAGE}?window=2d")
        counts.append(len(statements))
    assert counts[0] == counts[1]
