"""The pages of flavors with their nodes, for operators and auditors."""

from dataclasses import replace

import pytest

from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole, Team
from quotas.catalog import services
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor, Node
from quotas.catalog.sync import sync
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.gpu_facts import plugin_node
from tests.support.pages import browser_of, text
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(team: Team):
    fleet(team)
    return person(platform_role=PlatformRole.AUDITOR)


def test_every_flavor_has_its_state_its_offerings_and_its_nodes(auditor):
    Node.objects.filter(name="l40s-1").update(ready=False, problem="It is cordoned.")
    Flavor.objects.filter(name="h100").update(hidden=True)
    page = text(browser_of(auditor).get("/flavors"))
    assert "1 of 2 ready" in page
    assert "1 with a problem" in page
    assert "<code>l40s/whole</code>" in page
    states = {row["name"]: row["state"] for row in client(auditor).get("/api/v1/flavors").json()["results"]}
    assert states == {"h100": "hidden", "l40s": "offered"}
    for state in states.values():
        assert f">{state}</span>" in page


def test_a_flavor_shows_its_nodes_those_with_a_problem_first(auditor):
    Node.objects.filter(name="l40s-1").update(ready=False, problem="It is cordoned.")
    page = text(browser_of(auditor).get("/flavors/l40s"))
    assert page.index("l40s-1") < page.index("l40s-0")
    assert "It is cordoned." in page
    assert "h100-0" not in page


def test_a_node_that_is_not_offered_says_why(auditor):
    Node.objects.filter(name="l40s-1").update(flavor=None, problem="It has no GPU label.")
    page = text(browser_of(auditor).get("/flavors"))
    assert "Nodes without a flavor" in page
    assert "It has no GPU label." in page


def test_teams_do_not_see_the_fleets_nodes(auditor, team):
    for path in ("/flavors", "/flavors/l40s"):
        assert browser_of(person(team, "lead")).get(path).status_code == 403
    assert browser_of(auditor).get("/flavors/none").status_code == 404


@pytest.fixture
def operator():
    return person(platform_role=PlatformRole.OPERATOR)


def test_an_operator_makes_an_accepted_flavor_a_proposal_again(operator):
    sync(LOCAL, discover([plugin_node()], []), {})
    services.accept_flavor(SYSTEM, Flavor.objects.get(name="l40s"))
    browser = browser_of(operator)
    assert "/flavors/l40s/unaccept" in text(browser.get("/flavors/l40s"))
    assert "Nothing refers to it" in text(browser.get("/flavors/l40s/unaccept"))
    assert browser.post("/flavors/l40s/unaccept").headers["Location"] == "/flavors/l40s"
    assert not Flavor.objects.get(name="l40s").accepted


def test_the_page_says_what_refers_to_a_flavor(operator, team):
    fleet(team)
    page = text(browser_of(operator).get("/flavors/l40s/unaccept"))
    assert "1 limit and 1 quota change refer to it" in page
    assert browser_of(operator).post("/flavors/l40s/unaccept").status_code == 409
    assert Flavor.objects.get(name="l40s").accepted


def test_an_auditor_cannot_make_a_flavor_a_proposal(auditor):
    assert browser_of(auditor).get("/flavors/l40s/unaccept").status_code == 403
    assert "/flavors/l40s/unaccept" not in text(browser_of(auditor).get("/flavors/l40s"))


def test_a_node_of_which_nothing_is_healthy_is_not_ready(operator):
    sick = replace(plugin_node(), allocatable={"nvidia.com/gpu": 0})
    sync(LOCAL, discover([sick, plugin_node("l40s-1")], []), {})
    page = text(browser_of(operator).get("/flavors"))
    assert "1 of 2 ready" in page
    assert "1 with a problem" in page
