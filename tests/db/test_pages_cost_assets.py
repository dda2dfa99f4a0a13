"""/costs/assets: the page says what REST says, its strips fill the window, and a page takes as many statements of a
thousand nodes as of one.
"""

import re
from fractions import Fraction
from html import unescape

import pytest

from frontend.presenters import flavor_steps
from frontend.presenters.strip_axis import ticks
from portal.core import clock
from quotas.catalog.models import Flavor
from quotas.costs import asset_strips, rollups
from quotas.costs.calendar import UTC_CALENDAR, Calendar, zone
from quotas.costs.filters import EVERYTHING
from quotas.costs.rating import Window
from quotas.metering.models import UsageInterval
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, offer, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate
from tests.support.fleet import fleet as make_fleet
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
PAGE, WINDOW = "/costs/assets", "window=2026-11-02,2026-11-03"
DAY = Window(hour(0), hour(24))
NAMES = {"Held": "held", "Unmanaged": "unmanaged", "Unavailable": "unavailable", "Stranded": "stranded", "Idle": "idle"}


@pytest.fixture(autouse=True)
def at_ten():
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def auditor(team, other_team):
    """Record 10 hours of 8 l40s and of 2 h100, of which one is held by slices and stranded, one is used and fails."""
    make_fleet(team, other_team)
    flavor = Flavor.objects.get(name="h100")
    flavor.partitionable = True
    flavor.save()
    offer("3g.40gb", Fraction(3, 7))
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0), hour(10), 2)
    hold_gpu("gpu-0-mig-3g40gb-9-0", 1, 5, offering="h100/mig-3g.40gb", gpu_share=Fraction(3, 7))
    hold_gpu("gpu-0-mig-3g40gb-9-4", 2, 7.5, offering="h100/mig-3g.40gb", gpu_share=Fraction(3, 7), team="language")
    use_gpu_without_allocation("gpu-1", 0, 5)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS if unit.name == "gpu-1"}, 6)
    return person(platform_role="auditor")


def two_places(amount):
    return f"{round(float(amount), 2):.2f}"


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_gpus_and_nodes_have_the_hours_and_the_money_of_rest(auditor, is_rolled_up):
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(10))
    groups = browser_of(auditor).get(f"{PAGE}?{WINDOW}").context["nodes"]
    shown = {("gpu", line.name): line for group in groups for line in group.gpus}
    shown |= {("node", group.line.name): group.line for group in groups}
    rest = client(auditor)
    rows = [*rest.get(f"/api/v1/costs/assets?{WINDOW}").json()["results"]]
    rows += rest.get(f"/api/v1/costs/assets?{WINDOW}&aggregate=node").json()["results"]
    said = {(row["type"], row["name"] or row["node"]): row for row in rows if row["type"] != "resource"}
    assert shown.keys() == said.keys() == {("gpu", "gpu-0"), ("gpu", "gpu-1"), ("node", "h100-0")}
    for key, line in shown.items():
        assert line.capacity == two_places(said[key]["capacity_gpu_hours"])
        for cell in line.cells:
            name = NAMES[cell.title]
            cost = said[key]["cost" if name == "held" else f"{name}_cost"]
            assert cell.hours == two_places(said[key][name])
            assert float(cell.cost.removesuffix(" EUR")) == pytest.approx(float(cost), abs=0.005)
    assert {cell.title for line in shown.values() for cell in line.cells if cell.hours != "0.00"} == set(NAMES)


def test_flavors_have_the_hours_of_rest(auditor):
    lines = browser_of(auditor).get(f"{PAGE}?{WINDOW}").context["flavors"]
    rows = client(auditor).get(f"/api/v1/costs/assets?{WINDOW}").json()["results"]
    assert [line.name for line in lines] == ["h100", "l40s"]
    for line in lines:
        for cell in line.cells:
            total = sum(float(row[NAMES[cell.title]]) for row in rows if row["flavor"] == line.name)
            assert float(cell.hours) == pytest.approx(total, abs=0.005)


def test_the_parts_of_a_strip_fill_the_time_until_now(auditor):
    keys = asset_strips.nodes(auditor, DAY, EVERYTHING, hour(10))
    for strip in asset_strips.of_nodes(auditor, keys, DAY, hour(10)):
        moments = sorted({edge for part in strip.parts for edge in (part.start, part.end)})
        assert (moments[0], moments[-1]) == (hour(0), hour(10))
        for start in moments[:-1]:
            there = [part.gpus for part in strip.parts if part.start <= start < part.end]
            assert sum(there) == 1


def test_the_shapes_of_a_strip_cover_it_without_overlap(auditor):
    groups = browser_of(auditor).get(f"{PAGE}?{WINDOW}").context["nodes"]
    for line in (line for group in groups for line in group.gpus):
        boxes = [
            tuple(map(int, found))
            for shape in line.shapes
            for found in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)", shape.path)
        ]
        cells = [
            (x, y)
            for left, top, width, height in boxes
            for x in range(left, left + width)
            for y in range(top, top + height)
        ]
        assert len(cells) == len(set(cells)) == 250 * 28  # ten of 24 hours


def test_a_strip_says_who_held_the_gpu(auditor):
    page = text(browser_of(auditor).get(f"{PAGE}?{WINDOW}"))
    assert "<title>language / vision-train: 2.36 GPU-hours</title>" in page
    assert ">vision / vision-train</a>: 1.71 h" in page


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/local/h100-0"])
def test_flavors_nodes_gpus_and_projects_lead_to_their_pages(auditor, path):
    browser = browser_of(auditor)
    _, _, shown = text(browser.get(f"{path}?{WINDOW}")).partition('<ul class="legend">')
    links = set(re.findall(r"<a href=\"([^\"#]+)", shown.partition("</main>")[0]))
    assert {"/flavors/h100", "/fleet/nodes/local/h100-0"} <= links
    assert any(link.startswith("/costs?") and "project" in link for link in links)
    assert {link: browser.get(unescape(link)).status_code for link in links} == dict.fromkeys(links, 200)


def test_a_node_that_is_known_from_the_ledger_alone_has_its_times_and_no_link_to_itself(auditor):
    record_nodes(1)
    browser = browser_of(auditor)
    _, other = browser.get(f"{PAGE}?{WINDOW}").context["nodes"]
    assert (other.line.name, other.node_url) == ("h100-000", "")
    assert browser.get(other.line.url).status_code == 200
    assert browser.get(f"{PAGE}/local/nowhere").status_code == 404


def times_of(user, query=f"{WINDOW}&gpu=gpu-0"):
    return browser_of(user).get(f"{PAGE}/local/h100-0?{query}").context


def test_the_times_of_a_gpu_are_a_table(auditor):
    rows = times_of(auditor)["rows"]
    held = [(row.start, row.end, row.gpus, row.team) for row in rows if row.category == "Held"]
    assert held == [(hour(1), hour(5), "0.43", "vision"), (hour(2), hour(7.5), "0.43", "language")]
    assert [(row.start, row.end) for row in rows if row.category == "Idle" and row.gpus == "1.00"] == [
        (hour(0), hour(1)),
        (hour(7.5), hour(10)),
    ]


def test_the_times_of_a_gpu_add_up_to_its_gpu_hours(auditor):
    context = times_of(auditor)
    [line] = context["groups"][0].gpus
    parts = [one.part for one in context["times"]]
    assert two_places(sum(float(one.gpus) * (one.end - one.start).total_seconds() / 3600 for one in parts)) == "10.00"
    assert line.capacity == "10.00"


def test_who_held_a_gpu_is_named_and_leads_to_the_intervals(auditor, project):
    row = allocate(person(project.team), project, name="train")
    UsageInterval.objects.filter(team="language").update(holder_id=row.pk)
    found = {(one.holder, one.url) for one in times_of(auditor)["rows"] if one.team == "language"}
    assert found == {("vision-train / train", f"/costs/allocations/{row.pk}")}


def test_many_times_are_paged(auditor):
    for n in range(120):
        hold_gpu("gpu-1-mig-1g10gb-19-0", 7 + n / 60, 7 + (n + 0.5) / 60, gpu_share=Fraction(1, 7))
    first = times_of(auditor, WINDOW)
    assert (len(first["rows"]), first["times"].first, first["times"].is_part) == (100, 1, True)
    assert first["times"].next.endswith("page=2")


def test_the_page_of_a_node_takes_as_many_statements_with_many_times(auditor):
    browser = browser_of(auditor)

    def grow(number=49):
        for n in range(number):
            hold_gpu(f"gpu-1-mig-1g10gb-19-{number}", 7 + n / 60, 7 + (n + 0.5) / 60, gpu_share=Fraction(1, 7))

    grow(1)
    assert_constant(lambda: browser.get(f"{PAGE}/local/h100-0?{WINDOW}"), grow, at_most=25)


def test_the_strips_of_flavors_are_a_table_too(auditor):
    context = browser_of(auditor).get(f"{PAGE}?window=2026-11-01,2026-11-04&flavor=l40s").context
    [line] = context["flavors"]
    rows = context["flavor_steps"].rows
    assert {row.start for row in rows} == {hour(0)}
    assert sum(float(dict(row.hours)["Held"]) for row in rows) == pytest.approx(float(line.cells[0].hours), abs=0.01)
    by_hour = browser_of(auditor).get(f"{PAGE}?{WINDOW}&flavor=l40s").context["flavor_steps"]
    assert (by_hour.word, [row.start for row in by_hour.rows]) == ("hour", [hour(n) for n in range(10)])


def test_a_long_table_of_flavors_ends_and_says_so(auditor, monkeypatch):
    monkeypatch.setattr(flavor_steps, "MAX_ROWS", 3)
    page = text(browser_of(auditor).get(f"{PAGE}?{WINDOW}&flavor=l40s"))
    assert "These are the first 3 rows. 7 more are not shown" in page


def test_a_strip_has_an_axis_of_hours_of_a_day_and_of_days_of_a_month():
    assert [(one.label, one.x) for one in ticks(DAY, UTC_CALENDAR)][:3] == [
        ("2 Nov", 0),
        ("04:00", 16.67),
        ("08:00", 33.33),
    ]
    month = [one.label for one in ticks(Window(hour(-24), hour(29 * 24)), UTC_CALENDAR)]
    assert month == ["1 Nov", "8 Nov", "15 Nov", "22 Nov", ""]


def test_the_axis_is_of_the_readers_time_zone():
    tokyo = Calendar(zone("Asia/Tokyo"))
    week = ticks(Window(hour(0), hour(7 * 24)), tokyo)
    assert (week[0].label, week[0].x) == ("3 Nov", round(100 * 15 / 168, 2))
    assert [one.label for one in ticks(DAY, tokyo)][:4] == ["12:00", "16:00", "20:00", "3 Nov"]


def test_the_axis_has_few_ticks_for_any_time():
    for hours in (2, 5, 24, 25, 48, 7 * 24, 30 * 24, 31 * 24, 92 * 24):
        assert 2 <= len(ticks(Window(hour(0.3), hour(0.3 + hours)), UTC_CALENDAR)) <= 8


def test_every_strip_has_the_axis(auditor):
    page = text(browser_of(auditor).get(f"{PAGE}?{WINDOW}"))
    assert page.count('role="img"') == page.count('<use href="#axis-lines"/>') == 4
    assert ">04:00</text>" in page


def test_only_platform_staff_see_the_page(auditor, team):
    assert browser_of(auditor).get(PAGE).status_code == 200
    assert browser_of(person(team, "lead")).get(PAGE).status_code == 403


def test_nodes_are_filtered_by_flavor_and_name(auditor):
    browser = browser_of(auditor)
    found = browser.get(f"{PAGE}?{WINDOW}&flavor=l40s").context
    assert ([line.name for line in found["flavors"]], found["nodes"]) == (["l40s"], [])
    assert len(browser.get(f"{PAGE}?{WINDOW}&node=100").context["nodes"]) == 1
    assert "No node matches" in text(browser.get(f"{PAGE}?{WINDOW}&node=nowhere"))


@pytest.mark.parametrize("query", ["window=400d", "window=never", "sort=size", "page=0", "page=x"])
def test_what_the_page_cannot_show_is_refused_with_a_sentence(auditor, query):
    answer = browser_of(auditor).get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in text(answer)


def test_a_page_beyond_the_last_one_shows_the_last(auditor):
    page = browser_of(auditor).get(f"{PAGE}?{WINDOW}&page=99")
    assert (page.context["first"], page.context["last"], page.context["node_count"]) == (1, 1, 1)
    assert "Node 1 of 1." in text(page)


def record_nodes(count):
    units = {Unit(f"h100-{node:03}", GPU, f"gpu-{n}"): FoundUnit(1, 1) for node in range(count) for n in range(2)}
    record(units, 0, flavor="h100")


def test_nodes_with_the_most_idle_money_are_first_if_asked(auditor):
    record_nodes(3)
    names = [group.line.name for group in browser_of(auditor).get(f"{PAGE}?{WINDOW}&sort=idle").context["nodes"]]
    assert names == ["h100-000", "h100-001", "h100-002", "h100-0"]


@pytest.mark.parametrize("sort", ["name", "idle"])
def test_a_page_takes_as_many_statements_with_many_nodes(auditor, sort):
    browser, address = browser_of(auditor), f"{PAGE}?{WINDOW}&sort={sort}"
    record_nodes(1)
    assert_constant(lambda: browser.get(address), lambda: record_nodes(40), at_most=265)
    found = browser.get(address).context
    assert (len(found["nodes"]), found["node_count"]) == (25, 41)
    assert len(browser.get(f"{PAGE}?{WINDOW}&page=2").context["nodes"]) == 16


def test_of_a_time_before_capacity_was_recorded_only_what_was_held_is_shown(auditor):
    page = browser_of(auditor).get(f"{PAGE}?window=2026-11-01,2026-11-03")
    assert "Of the time before, only what was held is known." in text(page)
    [group] = page.context["nodes"]
    assert {cell.hours for cell in group.line.cells if cell.title != "Held"} == {"unknown"}
    left = [int(found) for line in group.gpus for shape in line.shapes for found in re.findall(r"M(\d+)", shape.path)]
    assert min(left) == 300  # nothing in the first of two days
