"""The journeys of an engineer, a lead, an auditor from finance and an operator through a month of costs: by mouse,
without scripts, by keyboard alone, and on a phone. All share one database, which each adds to.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from playwright.sync_api import Page, expect
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from frontend.views.costs import PAGE_ROWS
from portal.core import clock
from portal.tenants.models import User
from quotas.costs import bills
from quotas.costs.calendar import months_later
from quotas.costs.models import Bill, Price
from tests.support import simulated_month
from tests.support.clusters import LOCAL
from tests.support.hands import Keyboard, Mouse, Touch
from tests.support.pages import browser_of
from tests.support.people import client
from tests.support.simulated_month import Month

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
WAYS: dict[str, tuple[type[Mouse], dict[str, Any]]] = {
    "mouse": (Mouse, {}),
    "no scripts": (Mouse, {"java_script_enabled": False}),
    "keyboard": (Keyboard, {}),
    "phone": (Touch, PHONE),
}
PRICED = dict(zip(WAYS, ("h100", "a100", "l40s", "t4"), strict=True))
"""The flavor that an operator sets the price of, by way."""
Begin = Callable[[str], Mouse]


@pytest.fixture(scope="module")
def transactional_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Empty the database after all tests of this file, not after each as pytest-django's own."""
    with django_db_blocker.unblock():
        yield
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture(scope="module")
def month(transactional_db: None) -> Month:
    return simulated_month.write()


@pytest.fixture(scope="module")
def live_server(watched: None, month: Month) -> Iterator[LiveServer]:
    server = LiveServer("localhost")
    yield server
    server.stop()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def begin(open_page: Callable[..., Page], live_server: LiveServer, way: str) -> Iterator[Begin]:
    """Return a function that opens the first page for a person who is signed in."""
    hand_of, options = WAYS[way]
    hands: list[Mouse] = []

    def begin_(username: str) -> Mouse:
        page = signed_in(open_page(**options), username, live_server.url)
        page.goto("/")
        hands.append(hand_of(page))
        return hands[-1]

    yield begin_
    for hand in hands:
        hand.finish()


def signed_in(page: Page, username: str, url: str) -> Page:
    """Give the page the session of a person, without the way through the sign-in page."""
    browser = browser_of(User.objects.get(username=username))
    session = browser.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": session.key, "value": session.value, "url": url}])
    return page


def apply(hand: Mouse, way: str) -> None:
    """Press the button that applies what was chosen, which a script does else."""
    if way == "no scripts":
        hand.press(hand.page.get_by_role("button", name="Show", exact=True))
    elif way == "keyboard":
        hand.page.keyboard.press("Enter")


def of_rest(page: Page, username: str) -> dict[str, Any]:
    """Return what REST answers to the request that the page shows, with all rows."""
    command = str(page.locator("main pre").text_content())
    api = client(User.objects.get(username=username))
    body = found = api.get(command.partition(settings.PORTAL_URL)[2].rstrip("'")).json()
    while found.get("next"):
        found = api.get(found["next"]).json()
        body["results"] += found["results"]
    return dict(body)


def amounts(page: Page, column: str) -> list[str]:
    cells = page.locator(
        f"table.ranked tbody td[data-label^={column}] data, table.list:not(.ranked) td[data-label^={column}] data"
    )
    return [str(one) for one in cells.evaluate_all("(all) => all.map((one) => one.value)")]


def check_numbers(page: Page, username: str) -> None:
    """Check that the figures and rows of a page are those of REST. Totals of a month with a bill may be None."""
    rest = of_rest(page, username)
    assert page.locator("#tile-period data").get_attribute("value") == (rest["total"] or "")
    check_rows(page, rest["results"])
    assert len(rest["results"]) > 3


def downloaded(hand: Mouse) -> list[dict[str, Any]]:
    """Return the rows of the CSV of the page; None for what is not known."""
    with hand.page.expect_download() as download:
        hand.press(hand.page.get_by_role("link", name="CSV", exact=True))
    lines = csv.DictReader(StringIO(Path(download.value.path()).read_text()))
    return [{name: text or None for name, text in line.items()} for line in lines]


def total(rows: list[dict[str, Any]], name: str) -> str:
    """Return the sum of a column as the page has it: empty if it is not known."""
    amounts = [row[name] for row in rows]
    return "" if None in amounts else str(sum(map(Decimal, amounts)))


def check_rows(page: Page, rows: list[dict[str, Any]]) -> None:
    """Check that the page shows these rows, or a hundred of them."""
    assert page.locator("table.ranked tbody tr").count() == min(len(rows), PAGE_ROWS)
    for column, name in (("Cost", "total"), ("GPU-hours", "gpu_hours"), ("Change", "change")):
        found = [row[name] for row in rows if row[name] is not None]
        shown = amounts(page, column)
        assert len(shown) == min(len(found), PAGE_ROWS)
        if column != "Change":
            assert Counter(shown) <= Counter(found)
        elif len(found) <= PAGE_ROWS:
            # The period before is cut at the same time of it: seconds pass between page and REST.
            assert sum(map(Decimal, shown)) == pytest.approx(sum(map(Decimal, found)), abs=Decimal("0.1"))


def test_an_engineer_sees_what_the_last_month_cost_and_why(begin: Begin, way: str) -> None:
    hand = begin("language-member")
    page = hand.page
    if way == "no scripts":
        hand.press(page.get_by_role("link", name="My cost this month, and what runs now"))
    expect(page.get_by_role("row", name="notebook")).to_contain_text("EUR")
    hand.press(page.get_by_role("link", name=re.compile("^My .+ in costs$")))
    hand.choose(page.get_by_label("When"), "last month")
    apply(hand, way)
    page.wait_for_url("**window=lastmonth**")
    expect(page.get_by_label("Filters")).to_contain_text("Person is language-member")
    check_numbers(page, "language-member")
    hand.press(page.locator("table.ranked tbody th a").first)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Costs of language-")
    expect(page.locator("td[data-label=Evidence]").first).to_contain_text("Start:")
    cost = page.locator("dl.facts data").first.get_attribute("value")
    assert cost == of_rest(page, "language-member")["cost"] != "0.0000"
    assert sum(map(Decimal, amounts(page, "Cost"))) == Decimal(str(cost))
    assert hand.pressed == (4 if way == "no scripts" else 2)


def test_a_lead_finds_who_doubled_the_bill_in_at_most_four_clicks(begin: Begin, way: str, month: Month) -> None:
    hand = begin("vision-lead")
    page = hand.page
    hand.press(page.get_by_role("link", name="Costs", exact=True).first)
    hand.press(page.get_by_role("link", name="Largest changes"))
    expect(page.locator("table.ranked tbody tr").first).to_contain_text("vision-dev / sweep")
    ranked = page.url
    check_numbers(page, "vision-lead")
    hand.press(page.locator("table.ranked tbody th a").first)
    expect(page.get_by_role("heading", level=1)).to_have_text("Costs of vision-dev / sweep")
    expect(page.locator("dl.facts")).to_contain_text("vision-member")
    assert page.url.endswith(f"/costs/allocations/{month.grown.pk}")
    assert hand.pressed <= 4

    page.goto(ranked)
    lines = downloaded(hand)
    check_rows(page, lines)
    assert page.locator("#tile-period data").get_attribute("value") == total(lines, "total") != ""

    hand.press(page.locator(".saved summary"))
    hand.fill(page.get_by_label("Name of this view"), f"Who doubled the bill, {way}")
    hand.choose(page.get_by_label("For", exact=True), "team vision")
    hand.press(page.get_by_role("button", name="Save view"))
    expect(page.locator("main .banner").first).to_contain_text(
        f"View Who doubled the bill, {way} saved for team vision."
    )
    page.goto("/costs")
    hand.press(page.locator(".saved summary"))
    hand.press(page.get_by_role("link", name=f"Who doubled the bill, {way}"))
    expect(page.locator("table.ranked tbody tr").first).to_contain_text("vision-dev / sweep")
    assert page.url == ranked


def test_an_auditor_reads_a_bill_the_proof_and_a_month_that_is_equal_as_csv(begin: Begin, way: str) -> None:
    last, billed = (months_later(clock.now().date().replace(day=1), count) for count in (-1, -2))
    bills.enter_bill(User.objects.get(username="operator"), LOCAL, billed, "8000", "EUR", f"invoice for finance, {way}")
    hand = begin("auditor")
    page = hand.page
    hand.press(page.get_by_role("link", name="Costs", exact=True).first)
    hand.press(page.get_by_role("link", name="Bills", exact=True))
    bill = page.get_by_role("row", name=f"invoice for finance, {way}")
    expect(bill).to_contain_text(f"{billed:%Y-%m}")
    expect(bill).to_contain_text("8,000.00 EUR")
    expect(bill).to_contain_text("current")
    expect(page.get_by_role("link", name=re.compile("^Enter"))).to_have_count(0)

    hand.press(page.get_by_role("link", name="Reconciliation", exact=True))
    expect(page.get_by_text("Balanced since")).to_be_visible()
    expect(page.locator("table.proof tbody tr").first).to_contain_text("balanced")
    expect(page.get_by_role("heading", name="Failing rows")).to_have_count(0)

    hand.press(
        page.get_by_role("navigation", name="Pages of this section").get_by_role("link", name="Costs", exact=True)
    )
    hand.choose(page.get_by_label("When"), "last month")
    if way != "no scripts":
        apply(hand, way)
        page.wait_for_url("**window=lastmonth**")
    hand.choose(page.get_by_label("By", exact=True), "Project")
    apply(hand, way)
    rows = downloaded(hand)
    check_rows(page, rows)
    assert len(rows) > 3
    assert page.locator("#tile-period data").get_attribute("value") == total(rows, "total")
    assert bool(total(rows, "total")) is not Bill.objects.filter(month=last).exists(), "only a bill may be unknown"
    expect(page.locator("table.ranked tfoot")).to_contain_text(f"{Decimal(total(rows, 'gpu_hours')):,.2f}")
    assert hand.pressed == (6 if way == "no scripts" else 5)


def test_an_operator_finds_idle_money_and_enters_a_price_and_a_bill(begin: Begin, way: str, month: Month) -> None:
    hand = begin("operator")
    page = hand.page
    hand.press(page.get_by_role("link", name="Usage", exact=True))
    hand.choose(page.get_by_label("Nodes by"), "Idle cost, highest first")
    apply(hand, way)
    expect(page.locator("tr.node-row").first).to_contain_text("h100-")
    hand.press(page.get_by_role("link", name="Waste", exact=True))
    idle = page.get_by_role("row", name="language-dev / notebook")
    expect(idle).to_contain_text("EUR")
    expect(idle.get_by_role("link", name=re.compile("Release"))).to_be_visible()

    hand.press(page.get_by_role("link", name="Costs", exact=True))
    hand.press(page.get_by_role("link", name="Prices", exact=True))
    hand.press(page.get_by_role("link", name="Set a price", exact=True))
    hand.choose(page.get_by_label("Price of"), f"{PRICED[way]}, a GPU")
    hand.fill(page.get_by_label("Amount in EUR"), "1.30")
    hand.press(page.get_by_role("button", name="Preview changes"))
    expect(page.locator("#effect")).to_contain_text("1.30 EUR per GPU-hour")
    assert not Price.objects.filter(flavor__name=PRICED[way], per_gpu_hour="1.3").exists()
    hand.press(page.get_by_role("button", name="Set the price"))
    expect(page.locator("main .banner").first).to_contain_text(f"Price set: {PRICED[way]} 1.3 EUR")

    last = months_later(clock.now().date().replace(day=1), -1)
    hand.press(page.get_by_role("link", name="Bills", exact=True))
    hand.press(page.get_by_role("link", name=f"Enter the bill of local for {last:%Y-%m}"))
    hand.fill(page.get_by_label("Amount in EUR"), "9000")
    hand.fill(page.get_by_label("Source"), f"invoice, {way}")
    hand.press(page.get_by_role("button", name="Preview changes"))
    expect(page.locator("#effect")).to_contain_text("Bill of local")
    assert not Bill.objects.filter(source=f"invoice, {way}").exists()
    hand.press(page.get_by_role("button", name="Enter the bill"))
    expect(page.locator("main .banner").first).to_contain_text(f"Bill entered: local {last:%Y-%m}: 9000 EUR.")

    hand.press(page.get_by_role("link", name="Reconciliation", exact=True))
    expect(page.get_by_text("Balanced since")).to_be_visible()
    hand.press(page.get_by_label("Failing hours only"))
    apply(hand, way)
    expect(page.get_by_text("No failing hours in this period.")).to_be_visible()
