"""A limit changed on the matrix of limits: the fewest clicks, with scripts and without, by keyboard, and on a phone."""

import pytest
from playwright.sync_api import Locator, Page, expect

from portal.core import heartbeat
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog.models import Flavor, Path, Pool, PoolUse
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.clusters import LOCAL
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
    guaranteed = cell(page, "vision").get_by_label("Guaranteed")
    expect(guaranteed).to_be_focused()
    guaranteed.fill("6")
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
    cell(page, "language").locator("summary").click()
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


def test_limits_are_changed_by_keyboard_as_in_a_spreadsheet(open_page, operator):
    page = sign_in(open_page(), operator)
    page.goto("/limits")
    edit(page, "vision").focus()
    page.keyboard.press("ArrowUp")
    expect(edit(page, "language")).to_be_focused()
    page.keyboard.press("7")
    expect(cell(page, "language").get_by_label("Guaranteed")).to_have_value("7")
    page.keyboard.press("Enter")
    expect(edit(page, "vision")).to_be_focused()
    page.keyboard.press("Delete")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#effect")).to_contain_text("Preview of 2 changes")
    expect(page.locator("#effect")).to_contain_text("Guaranteed 4 → none")
    page.get_by_role("button", name="Apply 2 changes").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("/limits")
    assert nominal("language") == 7
    assert not Limit.objects.filter(team__slug="vision", pool__key=POOL).exists()


def test_a_change_is_taken_back_with_escape_and_a_cell_left_as_it_was_closes(open_page, operator):
    page = sign_in(open_page(), operator)
    page.goto("/limits")
    edit(page, "vision").click()
    page.keyboard.type("6")
    page.keyboard.press("Escape")
    expect(edit(page, "vision")).to_be_focused()
    expect(cell(page, "vision")).to_contain_text("0 / 4")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    expect(edit(page, "language")).to_be_focused()
    expect(page.locator(".matrix .cell-form")).to_have_count(0)


def test_twelve_pools_of_twenty_teams_are_seen_at_once(open_page, operator, team):
    for number in range(18):
        tenants.create_team(SYSTEM, team.department, f"team-{number:02}", "Team")
    for number in range(9):
        flavor = Flavor.objects.create(
            cluster_id=LOCAL,
            name=f"gpu-{number}",
            product=f"X{number}",
            path=Path.DEVICE_PLUGIN,
            strategy="plain",
            accepted=True,
        )
        pool = Pool.objects.create(key=f"gpu-{number}/gpu", flavor=flavor, resources={"nvidia.com/gpu": 1})
        PoolUse.objects.create(pool=pool, total=8)
    for name in ("worker", "watcher"):
        heartbeat.beat(name)
    page = sign_in(open_page(viewport={"width": 1440, "height": 900}), operator)
    page.goto("/limits")
    cells = page.locator(".matrix tbody tr[data-kind=team] td")
    assert cells.count() == 12 * 20
    last, frame = cells.last.bounding_box(), page.locator(".matrix").bounding_box()
    assert last
    assert frame
    assert last["height"] <= 32
    assert last["x"] + last["width"] <= min(1440, frame["x"] + frame["width"]), (last, frame)
    assert last["y"] + last["height"] <= min(900, frame["y"] + frame["height"]), (last, frame)


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
