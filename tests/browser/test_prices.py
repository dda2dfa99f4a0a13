"""An operator's journey through prices, bills and the proof, and what a member sees of the own cost."""

from datetime import UTC, datetime, time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.core import clock
from portal.tenants.models import User
from quotas.costs import rollups
from quotas.costs.calendar import months_later
from quotas.costs.models import Bill, NodeCost, Price
from quotas.metering import proofs
from quotas.metering.hours import DAY, HOUR, hour_of
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.pages import held, requested
from tests.support.people import person
from tests.support.quotas import T0, used

TABLE = "kind,of,term,amount,per\nprice,a100,,1.90,gpu\ncost,l40s,spot,0.60,gpu\n"
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
PATHS = (
    *("/prices", "/prices?all=1", "/prices/set", "/prices/node-costs/set", "/prices/node-terms/set", "/prices/import"),
    "/prices/public",
    *("/bills", "/bills/enter", "/bills/fixed-costs/set", "/costs/proof", "/costs/mine", "/teams/vision/costs"),
)


@pytest.fixture
def operator(team: Any) -> User:
    return with_password(person(platform_role="operator"))


@pytest.fixture
def last_month(team: Any) -> str:
    """Record the capacity of the last month, of which vision held two GPUs for ten days; return its name."""
    today = clock.now().date().replace(day=1)
    end = datetime.combine(today, time(), UTC)
    start = datetime.combine(months_later(today, -1), time(), UTC)
    record(RESOURCES, (start - DAY - T0) / HOUR)
    used(start, start + 10 * DAY, 2)
    rollups.roll_up(LOCAL, start - DAY, end)
    return f"{start:%Y-%m}"


def csv(text: str) -> Any:
    return {"name": "prices.csv", "mimeType": "text/csv", "buffer": text.encode()}


def open_prices(page: Page, *, scripts: bool) -> None:
    if not scripts:
        page.goto("/prices")
        return
    page.get_by_role("link", name="Costs", exact=True).click()
    page.get_by_role("link", name="Prices", exact=True).click()


@SCRIPTS
def test_an_operator_sets_a_price_imports_a_table_and_enters_a_bill(open_page, operator, last_month, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), operator)
    open_prices(page, scripts=scripts)
    page.get_by_role("link", name="Set a price", exact=True).click()
    page.get_by_label("Price of").select_option("l40s, a GPU")
    page.get_by_label("Amount in EUR").fill("1.30")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.locator("#effect")).to_contain_text("1.10 EUR per GPU-hour")
    assert not Price.objects.filter(per_gpu_hour="1.3").exists()
    page.get_by_role("button", name="Set the price").click()
    expect(page.locator("main .banner").first).to_contain_text("Price set: l40s 1.3 EUR")
    expect(page.get_by_role("row", name="l40s 1.30 EUR per GPU-hour")).to_contain_text("in force")

    page.get_by_role("link", name="Import CSV").click()
    page.get_by_label("CSV file").set_input_files(csv(TABLE + "price,nothing,,1,gpu\n"))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#effect")).to_contain_text("1 row cannot be imported")
    expect(page.get_by_role("row", name="Line 4 error")).to_contain_text("There is no flavor nothing")
    expect(page.get_by_role("button", name="Import", exact=True)).to_have_count(0)
    page.get_by_label("CSV file").set_input_files(csv(TABLE))
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("#effect")).to_contain_text("2 rows would be created")
    assert not NodeCost.objects.exists()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("main .banner").first).to_contain_text("Imported: 2 created, 0 unchanged.")
    expect(page.get_by_role("row", name="l40s, spot")).to_contain_text("0.60 EUR per GPU and hour")

    page.get_by_role("link", name="Bills", exact=True).click()
    expect(page.get_by_text("No bill covers these months yet.")).to_be_visible()
    page.get_by_role("link", name=f"Enter the bill of local for {last_month}").click()
    page.get_by_label("Amount in EUR").fill("9000")
    page.get_by_label("Source").fill("invoice 2026-1187")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.locator("#effect")).to_contain_text("the capacity of local cost")
    page.get_by_role("button", name="Enter the bill").click()
    expect(page.locator("main .banner").first).to_contain_text(f"Bill entered: local {last_month}: 9000 EUR.")
    expect(page.get_by_text("of what GPUs and nodes cost in these months")).to_contain_text("Bills cover")
    assert Bill.objects.get().source == "invoice 2026-1187"


@SCRIPTS
def test_an_operator_sees_since_when_the_ledger_is_balanced(open_page, operator, last_month, scripts):
    ended = hour_of(clock.now()) - 2 * HOUR
    proofs.prove(LOCAL, ended)
    page = sign_in(open_page(java_script_enabled=scripts), operator)
    page.goto("/costs/proof")
    expect(page.get_by_text("Balanced since")).to_be_visible()
    page.get_by_label("Failing hours only").check()
    if not scripts:
        page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No failing hours in this period.")).to_be_visible()


@SCRIPTS
def test_a_member_sees_the_own_cost_on_the_first_page(open_page, member, project, scripts):
    row = held(requested(member, project, name="training"), hours=1)
    page = sign_in(open_page(java_script_enabled=scripts), member)
    if not scripts:
        page.get_by_role("link", name="My cost this month, and what runs now").click()
    expect(page.get_by_text("Running now").first).to_be_visible()
    expect(page.get_by_role("row", name="training")).to_contain_text("8.80 EUR")
    page.goto(f"/allocations/{row.pk}")
    if not scripts:
        page.get_by_role("link", name="Cost by day, and how much of it no pod used").click()
    expect(page.get_by_role("table", name="Cost by day in EUR")).to_contain_text("1.10")


def test_a_price_is_set_by_keyboard_alone(open_page, operator):
    page = sign_in(open_page(), operator)
    page.goto("/prices/set")
    page.get_by_label("Price of").focus()
    page.keyboard.type("l40s")
    page.keyboard.press("Tab")
    page.keyboard.type("1.30")
    page.get_by_role("button", name="Preview changes").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#effect")).to_be_visible()
    page.get_by_role("button", name="Set the price").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("/prices")
    assert Price.objects.filter(per_gpu_hour="1.3").exists()


@pytest.mark.parametrize("width", [320, 390, 680, 960])
def test_none_of_these_pages_is_wider_than_its_window(open_page, operator, project, last_month, width):
    row = held(
        requested(with_password(person(project.team)), project, name="a-name-as-long-as-names-may-be-48"), hours=30
    )
    proofs.prove(LOCAL, hour_of(clock.now()) - 2 * HOUR)
    page = sign_in(open_page(viewport={**PHONE, "width": width}), operator)
    for path in (*PATHS, f"/allocations/{row.pk}/costs"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
