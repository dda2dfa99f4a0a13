"""The docs in the browser: legible in each theme under the portal's content security policy, found from every page."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support import axe
from tests.support.browser import sign_in
from tests.support.sizes import size

REPOSITORY = Path(__file__).parents[2]
PAGES = (
    *("", "start/engineer.html", "how-to/jobs.html", "how-to/set-limits.html", "operate/observe.html"),
    *("concepts/words.html", "concepts/architecture.html", "evidence/access.html", "search.html?q=preemption"),
)


@pytest.fixture(autouse=True)
def _served(site, settings):
    settings.DOCS_ROOT = site


@pytest.mark.parametrize(
    ("system", "chosen", "ground"),
    [("light", "", "rgb(255, 255, 255)"), ("dark", "", "rgb(19, 20, 22)"), ("light", "Dark", "rgb(19, 20, 22)")],
)
def test_pages_have_the_theme_of_the_portal_and_lead_back(open_page, member, system, chosen, ground):
    page = sign_in(open_page(color_scheme=system), member)
    if chosen:
        page.locator("details.menu summary").click()
        page.get_by_role("button", name=chosen).click()
    page.locator("footer.bottom").get_by_role("link", name="Docs").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", ground)
    page.get_by_role("link", name="Back to the portal").click()
    expect(page.get_by_role("heading", name="My GPUs")).to_be_visible()


def test_a_page_is_found_by_its_words(open_page, member):
    page = sign_in(open_page(), member)
    page.goto("/docs/")
    page.get_by_role("textbox", name="Search").fill("preemption")
    page.get_by_role("textbox", name="Search").press("Enter")
    expect(page.locator("#search-results li").first).to_be_visible()


def test_an_operation_of_rest_leads_to_its_description(open_page, member):
    page = sign_in(open_page(), member)
    page.goto("/docs/reference/rest.html")
    page.get_by_role("link", name="POST /allocations/preview").click()
    expect(page.locator("#operations-allocations-allocations_preview.is-open")).to_be_visible()


def test_security_evidence_is_found_by_its_entry_page_alone(open_page, member):
    page = sign_in(open_page(), member)
    page.goto("/docs/search.html?q=admission")
    expect(page.locator("#search-results li").first).to_be_visible()
    assert page.locator("#search-results a[href*='evidence/']:not([href*='evidence/index'])").count() == 0
    page.locator(".sidebar-tree").get_by_role("link", name="Security evidence").click()
    assert page.locator(".sidebar-tree a[href*='attacks.html']").count() == 0
    page.get_by_role("link", name="Attacks", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Attacks")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_is_wider_than_its_window_without_scripts(open_page, member, width, site):
    cookies = sign_in(open_page(), member).context.cookies()
    page = open_page(java_script_enabled=False, viewport={"width": width, "height": 800})
    page.context.add_cookies(cookies)
    wide = []
    for path in ("index.html", "concepts/architecture.html", "evidence/access.html", "reference/cli.html"):
        page.goto(f"/docs/{path}")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path)
    assert wide == []


@pytest.mark.skipif(not axe.is_installed(), reason="axe-playwright-python of requirements.lock is not installed")
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280), ("light", 1280)][: size(2, 3)])
def test_axe_finds_nothing(open_page, member, scheme, width):
    size = {"width": width, "height": 800}
    page = sign_in(open_page(color_scheme=scheme, viewport=size, bypass_csp=True), member)
    found = []
    for path in PAGES:
        page.goto(f"/docs/{path}")
        if path.startswith("search"):
            expect(page.locator("#search-results li").first).to_be_visible()
        found += [f"{path}: {each}" for each in axe.violations(page)]
    assert found == []
