"""The journeys of an engineer and a lead through costs, with scripts and without, by keyboard and on a phone."""

import csv
import gzip
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from demo import prices
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.pages import held, requested
from tests.support.people import person
from tests.support.quotas import used

MOST_BYTES, MOST_WITH_A_CHART = 80_000, 120_000


@pytest.fixture
def use(team, project, member):
    """Record use of two projects and two people over the last weeks, of which one doubled."""
    tenants.create_project(SYSTEM, team, "vision-dev", "Vision development")
    now = clock.now()
    for day in range(1, 20):
        start, doubled = now - timedelta(days=day, hours=2), day < 7
        used(start, start + timedelta(hours=2), member=member.username)
        used(start, start + timedelta(hours=4 if doubled else 1), project="vision-dev", member="grace")
    held(requested(member, project, name="training"), hours=3)
    prices.price()


def figure(page: Page, name: str) -> str:
    return str(page.locator(f"#tile-{name} dd.figure data").get_attribute("value"))


def downloaded(page: Page, link: str) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.get_by_role("link", name=link, exact=True).click()
    return list(csv.DictReader(StringIO(Path(download.value.path()).read_text())))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_engineer_sees_what_the_last_month_cost_and_why(open_page, member, use, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.get_by_role("link", name="Costs", exact=True).first.click()
    page.wait_for_load_state()  # the script that applies a choice
    page.get_by_label("When").select_option("30d")
    if scripts:
        page.wait_for_url("**window=30d**")
    else:
        page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("link", name="Only mine").click()
    expect(page.get_by_label("Filters")).to_contain_text(f"Person is {member.username}")
    rows = page.locator("table.ranked tbody tr")
    expect(rows).to_have_count(1)
    exported = sum(float(line["total"]) for line in downloaded(page, "CSV"))
    assert exported == pytest.approx(float(figure(page, "period")), abs=0.01)  # one of them still runs
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your costs by allocation")
    page.get_by_role("link", name="vision-train / training").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Costs of vision-train / training")
    expect(page.locator("table.list")).to_contain_text("held now")


def test_a_choice_by_arrow_keys_applies_with_enter_and_keeps_the_focus(open_page, member, use):
    page = sign_in(open_page(), member)
    page.goto("/costs")
    by = page.get_by_label("By", exact=True)
    by.focus()
    page.keyboard.press("ArrowDown")
    assert page.url.endswith("/costs")
    page.keyboard.press("Enter")
    page.wait_for_url("**aggregate=member**")
    expect(by).to_be_focused()


def test_a_lead_finds_in_four_clicks_who_doubled_the_bill_and_saves_the_view(open_page, team, use):
    page = sign_in(open_page(), with_password(person(team, "lead")))
    page.goto("/costs")
    clicks = [
        page.get_by_role("link", name="Change", exact=True),
        page.locator("table.ranked tbody tr").first.get_by_role("link"),
        page.locator("table.ranked tbody tr").first.get_by_role("link"),
        page.locator("table.ranked tbody tr").first.get_by_role("link"),
    ]
    clicks[0].click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Change")
    expect(page.locator("table.ranked tbody tr").first).to_contain_text("vision-dev")
    clicks[1].click()
    expect(page.get_by_label("Filters")).to_contain_text("Project is vision-dev")
    expect(page.locator("table.ranked tbody tr").first).to_contain_text("grace")
    clicks[2].click()
    page.locator(".saved summary").click()
    page.get_by_label("Name of this view").fill("Who doubled the bill")
    page.get_by_label("For", exact=True).select_option("vision")
    page.get_by_role("button", name="Save view").click()
    expect(page.locator("main .banner")).to_contain_text("View Who doubled the bill saved for team vision.")
    lines = downloaded(page, "CSV")
    shown = page.locator("table.ranked tbody tr td[data-label^=Cost] data")
    values = [cell.get_attribute("value") for cell in shown.all()]
    assert sorted(line["total"] for line in lines) == sorted(str(value) for value in values)
    clicks[3].click()
    expect(page.get_by_role("heading", name="Intervals")).to_be_visible()


def test_the_chart_is_whole_above_the_fold(open_page, member, use):
    page = sign_in(open_page(viewport={"width": 1440, "height": 900}), member)
    page.goto("/costs?window=30d")
    expect(page.get_by_role("slider").locator("canvas")).to_be_visible()
    bottom = page.locator("figure.chart").evaluate("(one) => one.getBoundingClientRect().bottom")
    assert bottom <= 900


def test_the_chart_is_read_by_keyboard_and_has_its_table(open_page, member, use):
    page = sign_in(open_page(), member)
    page.goto("/costs?window=30d")
    plot = page.get_by_role("slider")
    expect(plot.locator("canvas")).to_be_visible()
    plot.focus()
    page.keyboard.press("End")
    last = str(plot.get_attribute("aria-valuetext"))
    page.keyboard.press("ArrowLeft")
    before = str(plot.get_attribute("aria-valuetext"))
    assert before != last
    page.locator("figure summary").click()
    day, *_, total = page.locator("table.amounts tbody tr").nth(-2).locator("th, td").all_inner_texts()
    assert before.startswith(f"{day}: {total}")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_time_zones_are_suggested(open_page, member, use, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.goto("/costs")
    page.locator("summary", has_text="Filter and options").click()
    zones = page.locator("#zones option")
    expect(zones.filter(has_text="Europe/Berlin")).to_have_count(1)
    assert (zones.count() > 300) == scripts
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("main")).to_contain_text("Asia/Tokyo.")


def test_the_colours_of_a_chart_follow_the_theme(open_page, member, use):
    seen = set()
    for scheme in ("light", "dark"):
        page = sign_in(open_page(color_scheme=scheme), member)
        page.goto("/costs?window=30d")
        expect(page.locator(".plot canvas")).to_be_visible()
        seen.add(page.locator(".swatch").first.evaluate("(one) => getComputedStyle(one).backgroundColor"))
    assert len(seen) == 2


def test_no_page_of_costs_is_wider_than_a_phone(open_page, member, use):
    page = sign_in(open_page(viewport=PHONE | {"width": 320}), member)
    for path in (
        "/costs?window=30d&aggregate=project,member",
        "/costs?window=30d&aggregate=allocation",
        "/costs?window=x",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto("/costs?aggregate=allocation")
    page.get_by_role("link", name="vision-train / training").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("path", "most"), [("/costs?window=30d", MOST_WITH_A_CHART), ("/costs?window=2020-01-01,2020-02-01", MOST_BYTES)]
)
def test_the_first_load_is_small(open_page, member, use, path, most):
    page = sign_in(open_page(), member)
    page.goto(path, wait_until="networkidle")
    loaded = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    sizes = {url: len(gzip.compress(page.request.get(url).body(), 6)) for url in {page.url, *loaded}}
    assert len(sizes) > 4
    assert sum(sizes.values()) <= most, sizes
