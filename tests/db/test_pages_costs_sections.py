"""The pages of costs as one product: sections by role, links between them, the reader's days, and what has no price."""

import re
import shlex
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.utils.html import escape

from portal.core import clock, heartbeat
from quotas.costs import bills
from tests.support.capacity import RESOURCES, record
from tests.support.fleet import PRICES, allocate
from tests.support.fleet import fleet as make_fleet
from tests.support.pages import browser_of, held, text
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
COSTS_OF_ALL, USAGE_OF_ALL = ["Costs", "My costs", "Prices"], ["Waste"]
COSTS_OF_STAFF, USAGE_OF_STAFF = [*COSTS_OF_ALL, "Bills", "Reconciliation"], ["Timeline", "Capacity", "Waste"]
NAV = re.compile(r'<nav class="section-pages".*?</nav>', re.DOTALL)
LINK = re.compile(r'<a href="([^"]*)"(?: aria-current="(\w+)")?>([^<]*)</a>')
HEADER = re.compile(r'<a href="[^"]*"( aria-current="\w+")?>(Usage|Costs)</a>\n')


@pytest.fixture(autouse=True)
def fleet(team, other_team, request):
    """Create a fleet; a test may say which of its flavors have a price."""
    make_fleet(team, other_team, prices=getattr(request, "param", PRICES))
    heartbeat.beat("worker")
    heartbeat.beat("watcher")


def sections(page: str) -> list[tuple[str, str, str]]:
    """Return (address, current, word) of each section of a page."""
    [nav] = NAV.findall(page)
    return LINK.findall(nav)


def current_of_header(page: str) -> list[str]:
    return [word for now, word in HEADER.findall(page) if now]


@pytest.mark.parametrize(
    ("role", "section", "words"),
    [
        *(("", "Costs", COSTS_OF_ALL), ("", "Usage", USAGE_OF_ALL)),
        *(("auditor", "Costs", COSTS_OF_STAFF), ("auditor", "Usage", USAGE_OF_STAFF)),
        *(("operator", "Costs", COSTS_OF_STAFF), ("operator", "Usage", USAGE_OF_STAFF)),
    ],
)
def test_each_page_of_a_section_that_is_offered_may_be_seen_and_highlights_itself(team, role, section, words):
    browser = browser_of(person(platform_role=role) if role else person(team))
    found = sections(text(browser.get("/costs" if section == "Costs" else "/costs/savings")))
    assert [word for _, _, word in found] == words
    for address, _, word in found:
        answer = browser.get(address)
        assert answer.status_code == 200, word
        assert [(now, name) for _, now, name in sections(text(answer)) if now] == [("page", word)]
        assert current_of_header(text(answer)) == [section], word


@pytest.mark.parametrize(
    ("path", "word"),
    [
        *(("/prices/set", "Prices"), ("/prices/import", "Prices"), ("/bills/enter", "Bills")),
        *(("/teams/vision/costs", "Costs"), ("/costs/allocations/{}", "Costs"), ("/allocations/{}/costs", "Costs")),
    ],
)
def test_a_page_below_a_page_of_costs_highlights_it(member, project, path, word):
    row = held(allocate(member, project), hours=1)
    page = text(browser_of(person(platform_role="operator")).get(path.format(row.pk)))
    assert [(now, name) for _, now, name in sections(page) if now] == [("true", word)]
    assert current_of_header(page) == ["Costs"]


@pytest.mark.parametrize("path", ["/", "/allocations", "/limits", "/teams/vision"])
def test_other_pages_do_not_highlight_costs(browser, path):
    page = text(browser.get(path))
    assert current_of_header(page) == []
    assert not NAV.search(page)


@pytest.mark.parametrize("fleet", [{"h100": "3.20"}], indirect=True)
def test_costs_name_the_offerings_without_a_price_and_only_operators_are_offered_to_set_one(team):
    member, operator = browser_of(person(team)), browser_of(person(platform_role="operator"))
    pages = [text(browser.get("/costs")) for browser in (member, operator)]
    assert ["<code>l40s/whole</code>" in page for page in pages] == [True, True]
    assert ["/prices/set?of=flavor:l40s" in page for page in pages] == [False, True]


def test_names_on_the_page_of_a_team_lead_to_the_allocations_behind_them(member, project):
    row = held(allocate(member, project), hours=2)
    browser = browser_of(member)
    page = text(browser.get("/teams/vision/costs"))
    [link] = re.findall(rf'<th scope="row"><a href="([^"]*)">{member.username}</a>', page)
    address = unescape(link)
    assert parse_qs(urlsplit(address).query)["filter"] == [f'team:"vision"+member:"{member.username}"']
    [line] = browser.get(address).context["lines"]
    assert line.url == f"/costs/allocations/{row.pk}"
    assert f'<td data-label="Cost" class="number">{line.cost}' in page


def test_a_name_that_no_filter_can_have_is_no_link(member, project):
    used(clock.now().replace(hour=0), None, project=project.slug, member='ada"; x')
    page = text(browser_of(member).get("/teams/vision/costs"))
    assert '<th scope="row">ada&quot;; x</th>' in page
    costs = browser_of(member).get("/costs?aggregate=member&window=month")
    assert [line.url for line in costs.context["lines"]] == [""]


def test_a_person_whose_name_no_filter_can_have_still_has_a_page(team):
    odd = person(team)
    odd.username = 'ada"x'
    odd.save()
    assert browser_of(odd).get("/costs/mine").context["more_url"] == ""


@pytest.mark.parametrize(("window", "is_linked"), [("7d", True), ("365d", False)])
def test_what_nobody_held_leads_operators_to_the_idle_gpus(window, is_linked):
    record(RESOURCES, 0)
    used(hour(0), hour(5))
    with clock.frozen(hour(10)):
        browser = browser_of(person(platform_role="auditor"))
        page = browser.get(f"/costs?window={window}&aggregate=team,flavor&idle=separate")
        [idle] = [line for line in page.context["lines"] if "__idle__" in line.row.name]
        assert bool(idle.url) == is_linked
        if is_linked:
            assert browser.get(idle.url).context["given"]["flavor"] == "l40s"
            assert browser.get(idle.url).context["window"].start == page.context["table"].start


def test_days_of_the_fleet_are_the_readers_and_say_so():
    record(RESOURCES, 0)
    used(hour(0), hour(20))
    browser: Client = browser_of(person(platform_role="auditor"))
    browser.cookies["timezone"] = "Asia/Kathmandu"
    with clock.frozen(hour(60)):
        page = browser.get("/costs/fleet?window=2026-11-03,2026-11-05")
    assert page.context["start"] == datetime(2026, 11, 2, 18, 15, tzinfo=UTC)
    assert [(line.day, line.capacity) for line in page.context["fleet_lines"]] == [
        ("2026-11-04", "142.00"),
        ("2026-11-03", "192.00"),
    ]
    assert "Day (Asia/Kathmandu)" in text(page)
    assert "UTC" not in re.sub(r'title="[^"]*"', "", text(page).replace("UTC+05:45", ""))


def test_every_period_that_is_offered_for_the_fleet_is_shown():
    record(RESOURCES, 0)
    browser = browser_of(person(platform_role="auditor"))
    for window in browser.get("/costs/fleet").context["windows"]:
        page = browser.get(f"/costs/fleet?window={window}")
        assert not page.context["fleet_is_too_long"], window


@pytest.mark.parametrize(
    "path",
    ["/costs?window=7d", "/costs/savings", "/costs/assets", "/costs/fleet", "/costs/proof", "/teams/vision/costs"],
)
def test_each_page_with_a_period_tells_the_zone(path):
    browser = browser_of(person(platform_role="auditor"))
    browser.cookies["timezone"] = "Europe/Berlin"
    assert "Europe/Berlin." in text(browser.get(path))


def test_days_of_an_allocation_are_asked_for_in_the_readers_zone(member, project):
    row = held(allocate(member, project), hours=1)
    browser = browser_of(member)
    browser.cookies["timezone"] = "Asia/Tokyo"
    address = browser.get(f"/costs/allocations/{row.pk}").context["by_day"]
    assert parse_qs(urlsplit(address).query)["timezone"] == ["Asia/Tokyo"]


def test_a_cost_whose_bill_is_not_known_is_not_said_to_have_no_price(member, project):
    held(allocate(member, project), hours=1)
    month = clock.now().date().replace(day=1)
    bills.set_shared_cost(person(platform_role="operator"), "network", month, "300", "weighted")
    page = browser_of(member).get("/costs?window=today")
    [line] = page.context["lines"]
    assert (line.row.total, line.missing, page.context["table"].missing) == (None, "not known yet", "not known yet")
    assert "A bill or a fixed cost is not known yet" in text(page)
    assert "not priced" not in text(page)


OF_MEMBERS = [
    "/costs",
    "/costs/savings?window=30d",
    "/costs/mine",
    "/teams/vision/costs",
    "/projects/vision-train/costs",
]
FOR_AUDITORS = ["/costs/fleet?window=24h", "/costs/assets?flavor=h100", "/costs/assets/local/h100-0?window=today"]


@pytest.mark.parametrize("path", [*OF_MEMBERS, *FOR_AUDITORS])
def test_the_api_request_of_a_page_is_one_that_its_reader_may_send(member, project, path):
    held(allocate(member, project), hours=1)
    user = member if path in OF_MEMBERS else person(platform_role="auditor")
    page = browser_of(user).get(path)
    command = page.context["curl"]
    assert escape(command) in text(page)
    assert '-H "Authorization: Bearer $GPU_PORTAL_TOKEN"' in command
    address = urlsplit(shlex.split(command)[-1])
    assert client(user).get(f"{address.path}?{address.query}").status_code == 200


@pytest.mark.parametrize("path", ["/costs/mine", "/teams/vision/costs", "/projects/vision-train/costs"])
def test_a_month_is_there_as_csv(member, project, path):
    row = held(allocate(member, project), hours=1)
    page = browser_of(member).get(path)
    assert f'href="{escape(page.context["csv"])}" download' in text(page)
    lines = browser_of(member).get(page.context["csv"]).getvalue().decode().splitlines()
    assert lines[1].split(",")[2] == (str(row.pk) if path == "/costs/mine" else member.username)


def test_the_parts_of_the_fleet_are_told_apart_by_patterns_that_a_legend_names():
    record(RESOURCES, 0)
    browser = browser_of(person(platform_role="auditor"))
    with clock.frozen(hour(60)):
        page = text(browser.get("/costs/fleet?window=2026-11-03,2026-11-05"))
    _, _, legend = page.partition('<ul class="legend">')
    words = re.findall(r"</svg> (\w+)</li>", legend.partition("</ul>")[0])
    assert words == ["Held", "Unmanaged", "Unavailable", "Stranded", "Idle", "Variance"]
    styles = Path(str(finders.find("frontend/css/assets.css"))).read_text(encoding="utf-8")
    fills = dict(re.findall(r'\[data-part="(\w+)"\] \{ fill: url\("#(\w+)"\)', styles))
    assert set(fills) == {"unmanaged", "unavailable", "stranded", "variance"}
    assert set(fills.values()) <= set(re.findall(r'<pattern id="(\w+)"', page))
