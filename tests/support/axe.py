"""What axe finds wrong on a page: contrast, names, roles and structure, by the rules of WCAG 2.2 A and AA and the best
practices of axe itself.
"""

from importlib.util import find_spec
from pathlib import Path

from playwright.sync_api import Page

RUN = """() => axe.run(document, {resultTypes: ['violations'], preload: false}).then(found => found.violations.flatMap(
    rule => rule.nodes.map(node => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`)))"""


def is_installed() -> bool:
    return find_spec("axe_playwright_python") is not None


def violations(page: Page) -> list[str]:
    """Return a line for each element that breaks a rule."""
    found = find_spec("axe_playwright_python")
    assert found is not None and found.origin is not None
    page.evaluate((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    return list(page.evaluate(RUN))
