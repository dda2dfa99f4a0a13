"""A person's journey through the pages, with scripts and without, by mouse and by keyboard."""

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.core import clock, heartbeat
from portal.core.models import Heartbeat
from quotas.catalog.models import Flavor
from tests.support.browser import PHONE, sign_in
from tests.support.pages import held, in_phase, requested


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_signs_in_requests_and_sees_it_queued(open_page, member, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.get_by_role("link", name="Request a GPU").click()
    page.get_by_role("radio", name="l40s/whole").check()
    page.get_by_label("Slices", exact=True).fill("2")
    if not scripts:
        page.get_by_role("button", name="Check price and fit").click()
    expect(page.locator("#preview")).to_contain_text("Fits now")
    expect(page.locator("#preview")).to_contain_text("17.60 EUR")
    page.get_by_label("Purpose").fill("A try")
    page.get_by_role("button", name="Request", exact=True).click()
    expect(page.locator("#live .phase")).to_have_text("Queued")
    expect(page.locator("#live")).to_contain_text("2 × NVIDIA L40S")


def test_sees_what_cpu_and_memory_go_with_a_slice_and_with_a_request(open_page, member):
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    page = sign_in(open_page(viewport=PHONE), member)
    page.goto("/request")
    page.get_by_role("radio", name="l40s/whole").check()
    expect(page.locator("#preview")).to_contain_text("With 15.1 CPU and 123 GiB of memory for its pods.")
    page.get_by_label("Slices", exact=True).fill("2")
    expect(page.locator("#preview")).to_contain_text("With 30.3 CPU and 246 GiB of memory for its pods.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_releases_after_being_asked(open_page, member, project, scripts):
    row = held(requested(member, project, name="training"))
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.get_by_role("link", name="Release training").click()
    expect(page.get_by_role("heading", name="Release training?")).to_be_visible()
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.locator("#live .phase")).to_have_text("Releasing")
    row.refresh_from_db()
    assert row.desired == Allocation.Desired.RELEASED


def test_sees_it_start_without_reloading(open_page, member, project):
    row = requested(member, project, name="training")
    page = sign_in(open_page(), member)
    page.goto(f"/allocations/{row.pk}")
    expect(page.locator("#live .phase")).to_have_text("Queued")
    page.evaluate("window.sameDocument = true")
    held(row)
    expect(page.locator("#live .phase")).to_have_text("Active")
    expect(page.locator("#announce")).to_contain_text("training: Active")
    expect(page.get_by_role("button", name="Download gpu-portal.kubeconfig")).to_be_visible()
    expect(page.locator("#timeline + ol li")).to_have_count(2)
    expect(page).to_have_title("Active: training · GPU portal")
    assert page.evaluate("window.sameDocument"), "the document was not loaded anew"


def test_home_follows_what_happens(open_page, member, project):
    row = requested(member, project, name="training")
    page = sign_in(open_page(), member)
    expect(page.locator("#rows .phase")).to_have_text("Queued")
    in_phase(row, Phase.STARTING, "admitted", "Admitted by Kueue; the slices are being reserved.")
    expect(page.locator("#rows .phase")).to_have_text("Starting")


def test_a_refusal_offers_what_works_with_one_click(open_page, member):
    page = sign_in(open_page(), member)
    page.goto("/request")
    page.get_by_role("radio", name="l40s/whole").check()
    page.get_by_label("Slices", exact=True).fill("5")
    page.get_by_role("button", name="Request", exact=True).click()
    refusal = page.locator("#refusal")
    expect(refusal).to_contain_text("Team vision may hold 4 slices of l40s/whole at once, and 5 were requested.")
    expect(refusal).to_be_focused()
    refusal.get_by_role("link", name="4 × l40s/whole").click()
    expect(page.get_by_label("Slices", exact=True)).to_have_value("4")
    expect(page.locator("#preview")).to_contain_text("Fits now")


def test_a_long_summary_scrolls_within_itself_down_to_its_button(open_page, member):
    page = sign_in(open_page(viewport={"width": 1280, "height": 480}), member)
    page.goto("/request")
    page.get_by_role("radio", name="l40s/whole").check()
    page.get_by_label("Slices", exact=True).fill("5")
    expect(page.locator("#limits")).to_contain_text("Team vision may hold 4 slices")
    page.get_by_text("API request").click()
    height, window = page.locator(".summary").evaluate("summary => [summary.clientHeight, innerHeight]")
    assert height <= window
    assert page.locator(".summary").evaluate("summary => summary.scrollHeight > summary.clientHeight")
    button = page.get_by_role("button", name="Request", exact=True)
    button.scroll_into_view_if_needed()
    expect(button).to_be_in_viewport(ratio=1)


def test_a_double_click_asks_once(open_page, member):
    page = sign_in(open_page(), member)
    page.goto("/request")
    page.get_by_role("radio", name="l40s/whole").check()
    page.get_by_role("button", name="Request", exact=True).dblclick()
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert Allocation.objects.count() == 1


def test_times_are_in_the_readers_zone_from_the_first_page_on(open_page, member, project):
    row = held(requested(member, project, name="training"))
    page = sign_in(open_page(timezone_id="Asia/Tokyo"), member)
    page.goto(f"/allocations/{row.pk}")
    ends_at = page.locator("#live time").first
    assert row.ends_at is not None
    local = row.ends_at.astimezone(ZoneInfo("Asia/Tokyo"))
    expect(ends_at).to_have_text(f"{local:%Y-%m-%d %H:%M}")
    expect(ends_at).to_have_attribute("title", re.compile(r"Asia/Tokyo \(UTC\+09:00\)"))
    expect(page.locator("main")).not_to_contain_text(" UTC")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(hours=2, minutes=1), ", in 2 h"),
        (timedelta(minutes=5, seconds=30), ", in 5 min"),
        (timedelta(days=3, minutes=1), ", in 3 d"),
    ],
)
def test_a_countdown_is_in_hours_and_minutes(open_page, member, project, left, words):
    row = in_phase(held(requested(member, project)), Phase.LEAVING, "evicted_preempted", phase_until=clock.now() + left)
    page = sign_in(open_page(), member)
    page.goto(f"/allocations/{row.pk}")
    expect(page.locator("[data-countdown]")).to_contain_text(words)


def test_a_dialog_is_opened_and_left_by_keyboard(open_page, member, project):
    held(requested(member, project, name="training"))
    page = sign_in(open_page(), member)
    release = page.get_by_role("link", name="Release training")
    release.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("link", name="Back")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(release).to_be_focused()


def test_the_first_tab_leads_past_the_navigation(open_page, member):
    page = sign_in(open_page(), member)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_banner_goes_when_its_cause_is_gone(open_page, member):
    Heartbeat.objects.filter(name="worker").update(at=clock.now() - timedelta(hours=1))
    page = sign_in(open_page(), member)
    page.goto("/costs")
    expect(page.locator("#banners")).to_contain_text("Its worker did not report for a while.")
    heartbeat.beat("worker")
    expect(page.locator("#banners")).not_to_contain_text("did not report")


def test_the_menu_moves_nothing_of_the_page(open_page, member):
    page = sign_in(open_page(), member)
    places = "[...document.querySelectorAll('h1, .brand, .menu summary')].map((one) => one.getBoundingClientRect().y)"
    before = page.evaluate(places)
    page.locator(".menu summary").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert page.evaluate(places) == before


def test_the_theme_is_kept(open_page, member):
    page = sign_in(open_page(color_scheme="light"), member)
    light = background(page)
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Dark").click()
    assert background(page) != light
    page.goto("/costs")
    assert background(page) != light


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


def test_no_page_is_wider_than_a_phone(open_page, member, project):
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    row = held(requested(member, project, name="a-name-as-long-as-names-of-allocations-may-be-48", purpose="x" * 400))
    page = sign_in(open_page(viewport=PHONE), member)
    for path in (
        "/",
        "/request",
        "/allocations",
        f"/allocations/{row.pk}",
        f"/allocations/{row.pk}/extend",
        "/costs",
        "/me",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
