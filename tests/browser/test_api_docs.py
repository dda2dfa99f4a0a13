"""The documentation of the REST API in the browser: legible in each theme, and with a way back to the portal."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import sign_in

CONTRAST_OF_TEXT = 4.5
"""WCAG 2.2, 1.4.3."""
CONTRAST = """
() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).map((one) => one / 255);
    const linear = [r, g, b].map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.querySelectorAll(".back a, .title, .opblock-tag");
  return [...texts].map((text) => {
    const both = [luminance(getComputedStyle(text).color), luminance(ground(text))].sort((a, b) => b - a);
    return (both[0] + 0.05) / (both[1] + 0.05);
  });
}
"""


def ground(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


@pytest.mark.parametrize(
    ("system", "chosen", "is_dark"),
    [("light", "", False), ("dark", "", True), ("light", "Dark", True), ("dark", "Light", False)],
)
def test_it_is_legible_in_the_theme_of_the_portal_and_leads_back(open_page, member, system, chosen, is_dark):
    page = sign_in(open_page(color_scheme=system), member)
    if chosen:
        page.locator("details.menu summary").click()
        page.get_by_role("button", name=chosen).click()
    page.goto("/api/docs")
    expect(page.locator(".opblock").first).to_be_visible()
    assert ground(page) == ("rgb(28, 32, 34)" if is_dark else "rgb(255, 255, 255)")
    assert min(page.evaluate(CONTRAST)) >= CONTRAST_OF_TEXT
    page.get_by_role("link", name="Back to the GPU portal").click()
    expect(page.get_by_role("heading", name="My GPUs")).to_be_visible()
