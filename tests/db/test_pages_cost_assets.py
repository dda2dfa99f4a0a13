"""/costs/assets: the page says what REST says, its strips fill the window, and a page takes as many statements of a
thousand nodes as of one.
"""

import re
from fractions import Fraction

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from quotas.catalog.models import Flavor
from quotas.costs import asset_strips, rollups
from quotas.costs.filters import EVERYTHING
from quotas.costs.rating import Window
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, offer, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet as make_fleet
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import hour, used

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
    assert "vision / vision-train: 1.71 h" in page


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
    assert "Nodes 1 to 1 of 1." in text(page)


def record_nodes(count):
    units = {Unit(f"h100-{node:03}", GPU, f"gpu-{n}"): FoundUnit(1, 1) for node in range(count) for n in range(2)}
    record(units, 0, flavor="h100")


def test_nodes_with_the_most_idle_money_are_first_if_asked(auditor):
    record_nodes(3)
    names = [group.line.name for group in browser_of(auditor).get(f"{PAGE}?{WINDOW}&sort=idle").context["nodes"]]
    assert names == ["h100-000", "h100-001", "h100-002", "h100-0"]


@pytest.mark.parametrize("sort", ["name", "idle"])
def test_a_page_takes_as_many_statements_with_many_nodes(auditor, sort):
    browser, counts = browser_of(auditor), []
    for nodes in (1, 40):
        record_nodes(nodes)
        browser.get(PAGE)
        with CaptureQueriesContext(connection) as statements:
            found = browser.get(f"{PAGE}?{WINDOW}&sort={sort}").context
        counts.append(len(statements))
    assert (len(found["nodes"]), found["node_count"]) == (25, 41)
    assert counts[0] == counts[1]
    assert len(browser.get(f"{PAGE}?{WINDOW}&page=2").context["nodes"]) == 16


def test_of_a_time_before_capacity_was_recorded_only_what_was_held_is_shown(auditor):
    page = browser_of(auditor).get(f"{PAGE}?window=2026-11-01,2026-11-03")
    assert "Of the time before, only what was held is known." in text(page)
    [group] = page.context["nodes"]
    assert {cell.hours for cell in group.line.cells if cell.title != "Held"} == {"unknown"}
    left = [int(found) for line in group.gpus for shape in line.shapes for found in re.findall(r"M(\d+)", shape.path)]
    assert min(left) == 300  # nothing in the first of two days
