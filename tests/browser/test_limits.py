"""A limit changed on the matrix of limits: the fewest clicks, with scripts and without, by keyboard, and on a phone."""

import pytest
from playwright.sync_api import Locator, Page, expect

from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.people import person

POOL = "l40s/gpu"
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])


@pytest.fixture
def operator(team: Team) -> User:
    tenants.create_team(SYSTEM, team.department, "language", "Language")
    return with_password(person(platform_role="operator"))


def nominal(team: str) -> int:
    return Limit.objects.get(team__slug=team, pool__key=POOL).nominal


def count_clicks(page: Page) -> list[str]:
    """Return a list that grows with each click on the page."""
    clicks: list[str] = []
    page.expose_function("clicked", lambda clicked: clicks.append(clicked))
    page.add_init_script("addEventListener('click', (event) => clicked(event.target.outerHTML), true)")
    return clicks


def cell(page: Page, team: str) -> Locator:
    return page.locator(f"#cell-team-{team}-l40s-gpu")


def edit(page: Page, team: str) -> Locator:
    return page.get_by_role("button", name=f"Edit the limit of team {team} for {POOL}")


def test_a_limit_is_changed_with_three_clicks(open_page, operator):
    page = sign_in(open_page(viewport={"width": 1280, "height": 720}), operator)
    clicks = count_clicks(page)
    page.goto("/limits")
    edit(page, "vision").click()
    expect(page.get_by_label("Guaranteed")).to_be_focused()
    page.get_by_label("Guaranteed").fill("6")
    preview = page.get_by_role("button", name="Preview changes", exact=True).last
    expect(preview).to_be_in_viewport()
    preview.click()
    expect(page.locator("#effect")).to_contain_text("Guaranteed 4 → 6")
    assert nominal("vision") == 4
    apply = page.get_by_role("button", name="Apply 1 change")
    expect(apply).to_be_in_viewport()
    apply.click()
    expect(page.locator("main .banner").first).to_contain_text(f"Limit of vision for {POOL} is now 6.")
    assert nominal("vision") == 6
    assert len(clicks) == 3, clicks


@SCRIPTS
def test_two_limits_are_changed_under_one_preview(open_page, operator, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), operator)
    page.goto("/limits")
    edit(page, "vision").click()
    cell(page, "vision").get_by_label("Guaranteed").fill("1")
    edit(page, "language").click()
    cell(page, "language").get_by_label("Guaranteed").fill("7")
    cell(page, "language").get_by_label("Lending limit").fill("2")
    page.get_by_role("button", name="Preview changes", exact=True).last.click()
    expect(page.locator("#effect")).to_contain_text("Preview of 2 changes")
    expect(page.locator("#effect")).to_contain_text("8 units available, 4 allocated to teams now, 8 after the change.")
    cell(page, "vision").get_by_label("Guaranteed").fill("0")
    page.get_by_role("button", name="Apply 2 changes").click()
    expect(page.get_by_role("alert").filter(has_text="The values changed after the preview")).to_be_visible()
    assert nominal("vision") == 4
    page.get_by_role("button", name="Apply 2 changes").click()
    expect(page.locator("main .banner").first).to_contain_text("2 limits changed.")
    assert (nominal("vision"), nominal("language")) == (0, 7)


@SCRIPTS
def test_the_limits_of_a_team_are_copied_to_a_new_one(open_page, operator, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), operator)
    page.goto("/limits")
    page.get_by_label("Copy the limits of").select_option("vision")
    page.get_by_label("to", exact=True).select_option("language")
    page.get_by_role("button", name="Fill in").click()
    expect(cell(page, "language").get_by_label("Guaranteed")).to_have_value("4")
    page.get_by_role("button", name="Preview changes", exact=True).last.click()
    page.get_by_role("button", name="Apply 1 change").click()
    expect(page.locator("main .banner").first).to_contain_text("Limit of language")
    assert nominal("language") == 4


def test_a_limit_is_changed_by_keyboard_alone(open_page, operator):
    page = sign_in(open_page(), operator)
    page.goto("/limits")
    edit(page, "vision").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Guaranteed")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(page.locator("#effect")).to_contain_text("Guaranteed 4 → 5")
    page.get_by_role("button", name="Apply 1 change").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("/limits")
    assert nominal("vision") == 5


def test_a_change_is_taken_back_before_its_preview(open_page, operator):
    page = sign_in(open_page(), operator)
    page.goto("/limits")
    edit(page, "vision").click()
    page.get_by_label("Guaranteed").fill("6")
    page.get_by_role("button", name="Cancel the change of team vision").click()
    expect(edit(page, "vision")).to_be_focused()
    expect(cell(page, "vision")).to_contain_text("Guaranteed4")


@pytest.mark.parametrize("width", [320, 390, 640])
def test_the_matrix_scrolls_in_its_own_box_beside_its_row_headers(open_page, operator, width):
    limits.set_limit(SYSTEM, Team.objects.get(slug="language"), Pool.objects.get(key=POOL), 2)
    page = sign_in(open_page(viewport={**PHONE, "width": width}), operator)
    for path in (
        "/limits",
        f"/limits/changes?edit=team:vision:{POOL}",
        "/limits/changes?copy_from=vision&copy_to=language",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.locator(".matrix").evaluate("(box) => (box.scrollLeft = 500)")
        box = page.locator(".matrix").bounding_box()
        header = page.locator(".matrix").get_by_role("rowheader", name="team vision").bounding_box()
        assert box
        assert header
        assert abs(header["x"] - box["x"]) <= 2, path
        assert header["width"] < width / 2
