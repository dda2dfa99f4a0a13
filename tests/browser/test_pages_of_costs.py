"""All pages of costs with a month of the demo: axe, narrow windows, paper and keyboard, without scripts too. And axe on
what they show only after something was pressed.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from portal.core import clock
from portal.tenants.models import Project, Team, User
from tests.support import axe, cost_pages, sizes
from tests.support.browser import Open, sign_in, with_password
from tests.support.hold_pods import recorded_since
from tests.support.pages import held, requested
from tests.support.people import person
from tests.support.quotas import used

CHART = "/costs?window=30d&aggregate=project"
PAPER_PX = 718
AMOUNT = "Amount in EUR"
DESKTOP, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=360, height=780)
Look = tuple[Literal["light", "dark"], ViewportSize]
LOOKS: Sequence[tuple[Look, Look]] = ((("light", DESKTOP), ("dark", PHONE)), (("dark", DESKTOP), ("light", PHONE)))
NEEDS_AXE = pytest.mark.skipif(
    not axe.is_installed(), reason="axe-playwright-python of requirements.lock is not installed"
)
Visit = Sequence[tuple[User, str]]


@pytest.fixture
def user(team: Team, project: Project, member: User) -> User:
    """Return somebody who has used a GPU for some hours of each of the last days."""
    now = clock.now()
    for day in range(1, 12):
        start = now - timedelta(days=day, hours=2)
        used(start, start + timedelta(hours=day % 3 + 1), member=member.username, project=project.slug)
    return member


@pytest.fixture
def pages(transactional_db: None) -> Visit:
    """Return who opens which page: an operator all, a member of vision their own, with an allocation that runs."""
    cost_pages.month()
    own = cost_pages.of_allocation(cost_pages.running())
    operator, member = cost_pages.person("operator"), cost_pages.person("vision-member")
    return [
        *((operator, path) for path in (*cost_pages.FOR_STAFF, *cost_pages.FOR_ALL, *own)),
        *((member, path) for path in (*cost_pages.FOR_ALL, *own)),
    ]


def tabs(open_page: Open, visit: Visit, **options: object) -> dict[User, Page]:
    return {user: sign_in(open_page(**options), user) for user in {user for user, _ in visit}}


@pytest.fixture
def operator(team: Team, project: Project, member: User) -> User:
    """Return an operator; a member has held a GPU for ten hours without a pod."""
    recorded_since(0)
    held(requested(member, project, name="training"), hours=10)
    return with_password(person(platform_role="operator"))


@NEEDS_AXE
def test_axe_finds_nothing_with_everything_open_in_light_and_dark(open_page: Open, pages: Visit) -> None:
    opened = tabs(open_page, pages, bypass_csp=True)
    found = []
    for user, path in random.sample(pages, sizes.size(15, len(pages))):
        page = opened[user]
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        found += [(user.username, path, *each) for each in violations(page)]
    assert not found, "\n".join(map(str, found))


@NEEDS_AXE
def test_axe_finds_nothing_on_dialogs_previews_and_refusals(open_page: Open, operator: User) -> None:
    page = sign_in(open_page(bypass_csp=True), operator)
    found = [(state, *each) for state in states(page) for each in violations(page)]
    assert not found, "\n".join(map(str, found))


def states(page: Page) -> Iterator[str]:
    """Yield what the page shows now: the dialog of Savings, previews and refusals, and a view that cannot be saved."""
    preview = page.get_by_role("button", name="Preview")
    page.goto("/costs/savings?window=2d")
    page.get_by_role("link", name="Release").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    yield "release"
    for path, values, refused in (
        ("/prices/set?of=flavor:l40s", {AMOUNT: "1.30"}, {AMOUNT: "-1"}),
        ("/prices/node-costs/set?of=l40s&term=spot", {AMOUNT: "0.60"}, {"Flavor or node": "nothing"}),
        ("/bills/enter", {"Month": "2020-01", AMOUNT: "9000"}, {"Month": "2099-01"}),
        (
            "/bills/fixed-costs/set",
            {"Name": "network", "Month": "2099-01", AMOUNT: "9"},
            {AMOUNT: "-1"},
        ),
    ):
        page.goto(path)
        for label, text in values.items():
            page.get_by_label(label, exact=True).fill(text)
        preview.click()
        expect(page.locator("#effect")).to_be_visible()
        yield f"preview of {path}"
        for label, text in refused.items():
            page.get_by_label(label, exact=True).fill(text)
        preview.click()
        expect(page.locator("#errors")).to_be_visible()
        yield f"refusal of {path}"
    page.goto("/prices/import")
    page.get_by_label("CSV", exact=True).fill("kind,of,term,amount,per\nprice,nothing,,1,gpu\n")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#effect")).to_contain_text("1 row cannot be imported")
    yield "refusal of /prices/import"
    for _ in range(2):
        page.goto("/costs")
        page.locator(".saved summary").click()
        page.get_by_label("Name of this view").fill("Mine")
        page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("alert").filter(has_text="You have a saved view Mine already.")).to_be_visible()
    yield "a view that cannot be saved"


def violations(page: Page) -> list[tuple[str, int, str]]:
    """Return what axe finds in light and dark, at the width of a desktop and of a phone: by default one each."""
    found: list[tuple[str, int, str]] = []
    for scheme, size in chain(*random.sample(LOOKS, sizes.size(1, 2))):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        found += [(scheme, size["width"], each) for each in axe.violations(page)]
    return found


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_no_page_is_wider_than_its_window(open_page: Open, pages: Visit, scripts: bool) -> None:
    opened = tabs(open_page, pages, java_script_enabled=scripts)
    found = []
    for user, path in pages:
        page = opened[user]
        page.goto(path)
        for width in (320, 390, 640):  # 640: a window of 1280 at 200 %
            page.set_viewport_size({"width": width, "height": 780})
            found += [(user.username, path, width)] * (not _fits(page))
    assert not found


def _fits(page: Page) -> bool:
    """Return whether the page is no wider than its window, once a chart has been drawn anew."""
    try:
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", polling=50, timeout=3000)
    except PlaywrightTimeoutError:
        return False
    return True


def test_on_paper_there_is_no_navigation_and_ink_is_dark(open_page: Open, pages: Visit) -> None:
    opened = tabs(open_page, pages, color_scheme="dark", viewport={"width": PAPER_PX, "height": 1000})
    for user, path in pages:
        page = opened[user]
        page.goto(path)
        page.emulate_media(media="print")
        for hidden in ("header.top", "nav", "main form button", ".costs-form", ".filters", "footer"):
            assert page.locator(hidden).filter(visible=True).count() == 0, (path, hidden)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.locator("h1").evaluate("one => getComputedStyle(one).color") == "rgb(26, 32, 48)", path
        page.emulate_media(media="screen")


def test_on_paper_the_chart_fits_and_its_table_is_below_it(open_page: Open, user: User) -> None:
    page = sign_in(open_page(color_scheme="dark", viewport={"width": PAPER_PX, "height": 1000}), user)
    page.goto(CHART)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("table.amounts tbody tr").first).to_be_visible()
    assert page.locator(".plot canvas").evaluate("one => one.getBoundingClientRect().right") <= PAPER_PX
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("table.amounts tbody tr").first).to_be_hidden()


def test_on_paper_the_table_of_a_chart_needs_no_scripts(open_page: Open, user: User) -> None:
    page = sign_in(open_page(java_script_enabled=False), user)
    page.goto(CHART)
    expect(page.locator("table.amounts tbody tr").first).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.locator("table.amounts tbody tr").first).to_be_visible()


def test_the_sections_are_reached_by_keyboard_and_tell_where_one_is(open_page: Open, user: User) -> None:
    page = sign_in(open_page(), user)
    page.goto("/costs")
    sections = page.get_by_role("navigation", name="Pages of this section")
    for name in sections.get_by_role("link").all_inner_texts():
        sections.get_by_role("link", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        expect(sections.locator("[aria-current=page]")).to_have_text(name)
        expect(page.locator(".sections [aria-current]")).to_have_text("Costs")
