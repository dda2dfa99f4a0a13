"""How many rows of a list one sees at once, that its head stays, and that sorting and choosing need no script."""

import pytest
from playwright.sync_api import Page, expect

from allocations.models import Allocation
from portal.audit.entries import audit
from portal.tenants.models import Project, User
from tests.support import demo_fleet
from tests.support.browser import sign_in, with_password
from tests.support.pages import held, requested

DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
ROWS = 40


@pytest.fixture
def many(transactional_db):
    """Have forty allocations of one person, and as many entries of the log and more."""
    demo_fleet.run()
    member, project = User.objects.get(username="vision-member"), Project.objects.get(slug="vision-train")
    first = held(requested(member, project, "l40s/whole", name="training-00"))
    for number in range(1, ROWS):
        first.pk, first.name, first.number, first._state.adding = None, f"training-{number:02}", number, True
        first.save(force_insert=True)
    for number in range(ROWS):
        audit(
            "operator", "limit.set", f"vision/l40s/{number}", team="vision", before={"maximum": 4}, after={"maximum": 8}
        )


def operator(open_page, **how) -> Page:
    return sign_in(open_page(**how), with_password(User.objects.get(username="operator")))


def whole_rows(page: Page) -> int:
    return int(
        page.evaluate(
            "[...document.querySelectorAll('main table.list tbody tr')]"
            ".filter(row => row.getBoundingClientRect().bottom <= innerHeight).length"
        )
    )


@pytest.mark.parametrize("path", ["/allocations", "/audit"])
def test_twenty_two_rows_are_seen_at_once_each_in_one_line(open_page, many, path):
    page = operator(open_page, viewport=DESK)
    page.goto(path)
    assert whole_rows(page) >= 22
    heights = page.evaluate("[...document.querySelectorAll('main tbody tr')].map(row => row.offsetHeight)")
    assert max(heights) <= 34


def test_the_head_stays_when_one_scrolls(open_page, many):
    page = operator(open_page, viewport=DESK)
    page.goto("/allocations")
    page.mouse.wheel(0, 600)
    expect(page.get_by_role("link", name="Phase", exact=True)).to_be_in_viewport(ratio=1)


def test_a_list_is_sorted_and_two_allocations_released_without_scripts(open_page, many):
    page = operator(open_page, viewport=DESK, java_script_enabled=False)
    page.goto("/allocations")
    page.get_by_role("link", name="Name", exact=True).click()
    expect(page.locator("tbody th a").first).to_have_text("training-00")
    for name in ("training-00", "training-01"):
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("button", name="Release chosen").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Release 2 allocations?")
    page.get_by_role("button", name="Release 2").click()
    expect(page.locator("#messages")).to_contain_text("Release of 2 allocations requested.")
    assert Allocation.objects.filter(desired="released").count() == 2


def test_all_that_is_shown_is_chosen_by_one_box(open_page, many):
    page = operator(open_page, viewport=DESK)
    page.goto("/allocations")
    rows = page.locator("#allocations tbody input")
    page.get_by_label("Choose all shown").check()
    assert all(rows.nth(number).is_checked() for number in range(rows.count()))
    page.get_by_role("button", name="Release chosen").click()
    expect(page.get_by_role("heading", name=f"Release {ROWS} allocations?")).to_be_visible()


def test_a_filter_applies_on_change_and_is_in_the_address(open_page, many):
    page = operator(open_page, viewport=DESK)
    page.goto("/allocations")
    page.get_by_label("Phase", exact=True).select_option("Queued")
    expect(page.locator("#rows")).to_contain_text("No allocation matches the filters.")
    assert "phase=queued" in page.url


def test_on_a_phone_the_head_is_the_links_that_sort_and_nothing_overflows(open_page, many):
    page = operator(open_page, viewport=PHONE)
    page.goto("/allocations")
    page.get_by_role("link", name="Name", exact=True).click()
    assert "sort=name" in page.url
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
