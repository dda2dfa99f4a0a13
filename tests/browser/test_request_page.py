"""The request page as one decision: how many clicks lead to a GPU, how high the page is, and that its button is in
sight; on the demo's fleet.
"""

import re
from decimal import Decimal

import pytest
from playwright.sync_api import Locator, Page, expect

from allocations.models import Allocation
from portal.tenants.models import User
from tests.support import demo_fleet
from tests.support.browser import DESKTOP, Clicks, sign_in, with_password

PHONE = {"width": 390, "height": 844}
HEIGHTS = [(DESKTOP, 1200), (PHONE, 2000)]
NARROW = {"width": 320, "height": 568}


@pytest.fixture
def person(transactional_db: None) -> User:
    """Return a member of a team of the demo."""
    demo_fleet.run()
    return with_password(User.objects.get(username="vision-member"))


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Request", exact=True)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_three_clicks_lead_to_the_first_gpu(open_page, person, scripts):
    page, clicks = sign_in(open_page(java_script_enabled=scripts), person), Clicks()
    clicks.on(page.get_by_role("navigation", name="Sections").get_by_role("link", name="Request"))
    clicks.on(page.locator("label.offer", has_text="h100/whole"))
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 3
    row = Allocation.objects.get()
    assert (row.offering.key, row.count, row.hours) == ("h100/whole", 1, Decimal(8))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_three_clicks_lead_to_a_preset(open_page, person, scripts):
    page, clicks = sign_in(open_page(java_script_enabled=scripts), person), Clicks()
    clicks.on(page.get_by_role("navigation", name="Sections").get_by_role("link", name="Request"))
    clicks.on(page.get_by_role("link", name="8-GPU node"))
    expect(page.locator("#chosen")).to_have_text("8 × NVIDIA H100 80GB HBM3, 24 h, vision-dev")
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 3
    page.goto("/request")
    page.get_by_role("link", name="Last request").click()
    expect(page.locator("#chosen")).to_have_text("8 × NVIDIA H100 80GB HBM3, 24 h, vision-dev")


@pytest.mark.parametrize(("size", "highest"), HEIGHTS, ids=["desktop", "phone"])
def test_the_page_is_no_higher_than_its_goal_and_its_button_is_in_sight(open_page, person, size, highest):
    page = sign_in(open_page(viewport=size), person)
    page.goto("/request")
    assert page.evaluate("document.documentElement.scrollHeight") <= highest
    expect(button(page)).to_be_in_viewport(ratio=1)
    page.locator("label.offer", has_text="l40s/whole").click()
    expect(page.locator("#chosen")).to_have_text("1 × NVIDIA L40S, 8 h, vision-dev")
    for top in (0, 600, 10_000):
        page.evaluate(f"scrollTo(0, {top})")
        expect(button(page)).to_be_in_viewport(ratio=1)
        expect(page.locator("#chosen")).to_be_in_viewport(ratio=1)


def test_what_has_the_focus_is_never_behind_the_bar_of_a_phone(open_page, person):
    page = sign_in(open_page(viewport=PHONE), person)
    page.goto("/request")
    bar = page.locator(".decide").evaluate("bar => bar.getBoundingClientRect().top")
    for _ in range(24):
        page.keyboard.press("Tab")
        bottom = page.evaluate(
            "(() => { const one = document.activeElement;"
            " return one.closest('.decide, body > header') ? 0 : one.getBoundingClientRect().bottom; })()"
        )
        assert bottom <= bar + 1


def test_the_page_fits_the_narrowest_window(open_page, person):
    page = sign_in(open_page(viewport=NARROW), person)
    page.goto("/request?offering=h100/claim")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


IN_SIGHT = """rows => rows.filter(row => {
    const box = row.getBoundingClientRect();
    return box.height && box.top >= 0 && box.bottom <= innerHeight;
}).length"""


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_fourteen_offerings_are_in_sight_and_sort_by_their_heads(open_page, person, scripts):
    page = sign_in(open_page(viewport={"width": 1440, "height": 900}, java_script_enabled=scripts), person)
    page.goto("/request?offering=l40s/whole")
    page.get_by_role("button", name="EUR/h").click()
    expect(page.get_by_role("columnheader", name="EUR/h")).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("radio", name="l40s/whole")).to_be_checked()
    assert page.locator(".offerings tr.row").evaluate_all(IN_SIGHT) >= 14
    assert (
        page.locator(".offerings tr.row").evaluate_all("rows => Math.max(...rows.map(row => row.offsetHeight))") <= 33
    )


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_mig_slices_are_folded_under_their_model_and_a_row_is_chosen_by_keyboard(open_page, person, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), person)
    page.goto("/request")
    slice_ = page.locator(".offerings").get_by_role("radio", name="h100/mig-1g.10gb", exact=False).first
    expect(slice_).to_be_hidden()
    page.get_by_text("NVIDIA H100 80GB HBM3: 7 MIG slices").focus()
    page.keyboard.press("Enter")
    expect(slice_).to_be_visible()
    slice_.focus()
    page.keyboard.press("Space")
    expect(slice_).to_be_checked()


def test_a_request_is_saved_as_a_preset_and_removed(open_page, person):
    page = sign_in(open_page(), person)
    page.goto("/request?offering=l40s/whole&count=2")
    page.get_by_text("Save as preset").click()
    page.get_by_label("Name of the preset").fill("Two")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto("/request")
    page.get_by_role("link", name="Two").click()
    expect(page.locator("#chosen")).to_have_text("2 × NVIDIA L40S, 8 h, vision-dev")
    page.get_by_role("button", name="Remove the preset Two").click()
    expect(page.get_by_role("link", name="Two")).to_have_count(0)
    expect(page.locator("#chosen")).to_have_text("2 × NVIDIA L40S, 8 h, vision-dev")


def test_the_bar_of_a_phone_has_the_price(open_page, person):
    page = sign_in(open_page(viewport=PHONE), person)
    page.goto("/request")
    page.locator("label.offer", has_text="l40s/whole").click()
    expect(page.locator("#chosen-price")).to_have_text("8.80 EUR")
    expect(page.locator("#chosen-price")).to_be_in_viewport(ratio=1)


def test_filters_keep_what_is_chosen_and_say_how_much_is_shown(open_page, person):
    page = sign_in(open_page(), person)
    page.goto("/request")
    page.locator("label.offer", has_text="l40s/whole").click()
    page.get_by_label("Kind", exact=True).select_option("MIG slices")
    expect(page.locator("#found")).to_have_text(re.compile(r"\d+ kinds of slice shown"))
    expect(page.get_by_role("radio", name="l40s/whole")).to_be_checked()
    expect(page.get_by_role("radio", name="t4/shared")).to_have_count(0)
    expect(page.get_by_role("radio", name="h100/mig-1g.10gb", exact=False).first).to_be_visible()
    expect(page.get_by_label("Kind", exact=True)).to_have_value("mig")


def test_filters_work_without_scripts(open_page, person):
    page = sign_in(open_page(java_script_enabled=False), person)
    page.goto("/request")
    page.get_by_label("Kind", exact=True).select_option("Shared slices")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("radio")).to_have_count(1 + 5)
    assert "csrfmiddlewaretoken" not in page.url


def test_an_alternative_is_taken_with_one_click(open_page, person):
    page = sign_in(open_page(viewport=DESKTOP), person)
    page.goto("/request?offering=h100/whole&count=9")
    clicks = Clicks()
    clicks.on(page.locator("#instead .alternatives a").first)
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 2


COVERED = """links => links.filter(link => {
    const box = link.getBoundingClientRect();
    return !link.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2));
}).map(link => link.textContent)"""


@pytest.mark.parametrize("size", [DESKTOP, {"width": 1280, "height": 720}], ids=["desktop", "laptop"])
def test_a_refusal_shows_what_would_fit_and_nothing_covers_it(open_page, person, size):
    page = sign_in(open_page(viewport=size), person)
    page.goto("/request?offering=h100/whole&count=9")
    links = page.locator("#instead .alternatives a")
    expect(links.first).to_have_class("button main")
    expect(links).to_have_count(5)
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)
    expect(button(page)).to_be_in_viewport(ratio=1)
    assert links.evaluate_all(COVERED) == []


def test_a_claim_is_built_beneath_its_radio(open_page, person):
    page = sign_in(open_page(viewport=DESKTOP), person)
    page.goto("/request")
    page.locator("label.offer", has_text="h100/claim").click()
    first = page.locator(".offerings").get_by_role("region", name="Request 1")
    expect(first).to_contain_text("Matches 16 devices.")
    expect(first.get_by_label("MIG profile")).to_be_hidden()
    first.get_by_label("Device", exact=True).select_option("MIG slice")
    first.get_by_label("MIG profile").select_option("3g.40gb")
    expect(first).to_contain_text("Matches 32 devices.")
    expect(page.locator("#claim-yaml")).to_contain_text("deviceClassName: mig.nvidia.com")
    first.get_by_label("Attribute").first.select_option("quantity:memory")
    expect(page.locator("#values-row-0-c0 option").first).to_be_attached()
    page.locator("label.offer", has_text="l40s/whole").click()
    expect(first).to_have_count(0)
