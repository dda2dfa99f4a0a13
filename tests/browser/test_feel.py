"""Keys, the command palette and toasts, as a person at the keyboard meets them."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from allocations.domain.phases import Phase
from portal.core import clock
from tests.support import axe
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.pages import held, in_phase, requested
from tests.support.people import person


@pytest.fixture
def page(open_page, member):
    return sign_in(open_page(), member)


def palette(page):
    return page.get_by_role("dialog", name="Command palette")


def test_n_opens_the_request_page(page):
    page.keyboard.press("n")
    page.wait_for_url("/request")


def test_n_does_nothing_for_who_may_not_request(open_page, team):
    page = sign_in(open_page(), with_password(person(team, "viewer")))
    page.keyboard.press("n")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert page.url.endswith("/")


def test_a_slash_goes_to_the_filter_of_the_page_or_opens_the_palette(page):
    page.goto("/people")
    page.keyboard.press("/")
    expect(page.get_by_label("Person or team")).to_be_focused()
    expect(page.get_by_label("Person or team")).to_have_value("")
    page.goto("/me")
    page.keyboard.press("/")
    expect(palette(page)).to_be_visible()


def test_a_question_mark_shows_the_keys_and_escape_closes_them(page):
    page.keyboard.press("?")
    shown = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shown).to_contain_text("Open the command palette")
    page.keyboard.press("Escape")
    expect(shown).to_be_hidden()


def test_keys_of_one_letter_do_nothing_in_fields_in_dialogs_and_with_modifiers(page):
    page.goto("/people")
    field = page.get_by_label("Person or team")
    field.focus()
    page.keyboard.type("n/?")
    expect(field).to_have_value("n/?")
    field.blur()
    for key in ("Control+n", "Alt+n", "Meta+/"):
        page.locator("body").dispatch_event("keydown", _key(key))
    page.keyboard.press("Control+k")
    expect(palette(page)).to_be_visible()
    page.keyboard.type("n?")
    expect(palette(page).get_by_role("combobox")).to_have_value("n?")
    page.keyboard.press("Escape")
    expect(palette(page)).to_be_hidden()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("/people")


def _key(words):
    modifier, key = words.split("+")
    names = {"Control": "ctrlKey", "Alt": "altKey", "Meta": "metaKey"}
    return {"key": key, names[modifier]: True, "bubbles": True, "cancelable": True}


def test_keys_of_one_letter_can_be_turned_off_and_the_palette_stays(page):
    page.keyboard.press("?")
    expect(page.locator("#dialog [data-close]")).to_be_focused()
    page.get_by_role("button", name="Turn off single keys").press("Enter")
    expect(page.locator("body")).to_have_attribute("data-keys", "off")
    page.wait_for_load_state()  # the attribute is there before the scripts
    page.keyboard.press("n")
    page.keyboard.press("Control+k")
    expect(palette(page)).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(".menu summary").click()
    page.get_by_role("link", name="Keyboard shortcuts").click()
    expect(page.locator("#dialog [data-close]")).to_be_focused()
    page.get_by_role("button", name="Turn on single keys").press("Enter")
    expect(page.locator("body")).not_to_have_attribute("data-keys", "off")
    page.wait_for_load_state()
    page.keyboard.press("n")
    page.wait_for_url("/request")


def test_the_palette_goes_to_an_allocation_by_keyboard_alone(page, member, project):
    requested(member, project, name="evaluation")
    row = requested(member, project, name="training")
    page.keyboard.press("Control+k")
    page.keyboard.type("train queue")
    expect(page.get_by_role("option", name=re.compile("^training"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"/allocations/{row.pk}")


def test_arrow_keys_choose_in_the_palette_and_an_offering_is_chosen_on_the_request_page(page):
    page.get_by_role("button", name="Go to").press("Enter")
    field = page.get_by_role("combobox")
    expect(field).to_be_focused()
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    for key, number in (("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1)):
        page.keyboard.press(key)
        option = page.get_by_role("option").nth(number)
        expect(option).to_have_attribute("aria-selected", "true")
        expect(field).to_have_attribute("aria-activedescendant", option.get_attribute("id") or "")
    page.keyboard.type("l40s/whole")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name="l40s/whole")).to_be_checked()


def test_enter_waits_for_a_list_that_is_still_on_its_way(page):
    requests = []
    page.route("**/palette?*", lambda route: requests.append(route))
    with page.expect_request("**/palette?*"):
        page.keyboard.press("Control+k")
    page.keyboard.type("my cost")
    page.keyboard.press("Enter")
    requests[0].continue_()
    page.wait_for_url("/costs/mine")


def test_escape_gives_the_focus_back_to_where_it_was(page):
    link = page.get_by_role("link", name="Request a GPU")
    link.focus()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_be_focused()


@pytest.mark.skipif(not axe.is_installed(), reason="axe-playwright-python of requirements.lock is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_with_palette_keys_toast_or_first_steps_shown(open_page, member, project, scheme):
    page = sign_in(open_page(color_scheme=scheme, bypass_csp=True), member)
    expect(page.get_by_role("heading", name="Your first GPU")).to_be_visible()
    found = [("first steps", each) for each in axe.violations(page)]
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    found += [("palette", each) for each in axe.violations(page)]
    page.keyboard.type("nothing is called this")
    expect(page.get_by_role("option")).to_have_count(0)
    found += [("empty palette", each) for each in axe.violations(page)]
    page.keyboard.press("Escape")
    expect(palette(page)).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    found += [("keys", each) for each in axe.violations(page)]
    page.keyboard.press("Escape")
    row = held(requested(member, project, name="training"))
    page.goto(f"/allocations/{row.pk}/release")
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("Release of training requested.")
    found += [("toast", each) for each in axe.violations(page)]
    assert found == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_palette_and_header_fit_the_window(open_page, member, width):
    page = sign_in(open_page(viewport={"width": width, "height": 780}), member)
    page.get_by_role("button", name="Go to").click()
    expect(page.get_by_role("option").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = palette(page).bounding_box()
    assert box is not None
    assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_without_scripts_there_is_no_button_that_does_nothing_and_the_keys_are_a_page(open_page, member):
    page = sign_in(open_page(java_script_enabled=False), member)
    expect(page.get_by_role("button", name="Go to")).to_be_hidden()
    page.locator(".menu summary").click()
    page.get_by_role("link", name="Keyboard shortcuts").click()
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()


@pytest.fixture
def released(member, project):
    return held(requested(member, project, name="training"))


def release(page, row):
    page.goto(f"/allocations/{row.pk}/release")
    page.get_by_role("button", name="Release", exact=True).click()
    return page.locator(".toast")


def test_a_toast_is_dismissed_by_keyboard_and_the_focus_goes_to_the_page(page, released):
    toast = release(page, released)
    expect(toast).to_contain_text("Release of training requested.")
    expect(page.locator("#messages")).to_have_attribute("aria-live", "polite")
    toast.get_by_role("button", name="Dismiss").press("Enter")
    expect(toast).to_have_count(0)
    expect(page.locator("main")).to_be_focused()


def test_a_toast_goes_after_a_while_but_not_while_it_has_the_focus(open_page, member, released):
    page = sign_in(open_page(), member)
    page.clock.install()
    toast = release(page, released)
    page.clock.run_for(1000)
    button = toast.get_by_role("button", name="Dismiss")
    button.focus()
    page.clock.run_for(60_000)
    expect(toast).to_be_visible()
    page.locator("main").focus()
    page.clock.run_for(60_000)
    expect(toast).to_have_count(0)


def test_a_toast_covers_neither_the_button_of_the_request_page_nor_its_own(open_page, member, project):
    page = sign_in(open_page(viewport=PHONE), member)
    page.goto("/request")
    page.get_by_role("radio", name="l40s/whole").check()
    page.get_by_role("button", name="Request", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Request submitted.")
    expect(page.get_by_role("button", name="Dismiss")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_what_was_done_is_a_banner_in_the_page(open_page, member, released):
    page = sign_in(open_page(java_script_enabled=False), member)
    toast = release(page, released)
    expect(toast).to_contain_text("Release of training requested.")
    expect(toast).to_have_css("position", "static")
    expect(page.locator("#messages")).to_have_css("position", "static")


def test_times_do_not_tick(page, member, project):
    until = clock.now() + timedelta(minutes=50, seconds=30)
    row = in_phase(held(requested(member, project)), Phase.LEAVING, "evicted_preempted", phase_until=until)
    page.clock.install()
    page.goto(f"/allocations/{row.pk}")
    left = page.locator("[data-countdown]")
    expect(left).to_have_text(re.compile(r", in (50|49) min$"))
    page.evaluate(
        """() => { window.changes = 0; new MutationObserver((found) => { window.changes += found.length; })
        .observe(document.querySelector("[data-countdown]"), {childList: true, characterData: true}); }"""
    )
    page.clock.run_for(10_000)
    assert page.evaluate("window.changes") <= 1
