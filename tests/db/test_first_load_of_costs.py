"""The first load of each page of costs with a month of the demo: page, styles, scripts and icons, compressed."""

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib.staticfiles import finders

from tests.support import cost_pages
from tests.support.pages import browser_of, text

pytestmark = pytest.mark.django_db
MOST_BYTES, MOST_WITH_A_CHART = 80_000, 120_000
LOADED = re.compile(r'<(?:link|script|use)\b[^>]*?\b(?:href|src)="(/static/[^"#]+)')
IMPORTED = re.compile(r'@import url\("([^"]+)"\)')


def compressed(content: bytes) -> int:
    return len(gzip.compress(content, 6))


def static_files(addresses: set[str]) -> dict[str, bytes]:
    """Return the contents of static files and of what their styles import, by address."""
    found: dict[str, bytes] = {}
    left = set(addresses)
    while left:
        address = left.pop()
        path = finders.find(urlsplit(address).path.removeprefix("/static/"))
        assert path, address
        found[address] = Path(str(path)).read_bytes()
        if address.endswith(".css"):
            left |= {urljoin(address, name) for name in IMPORTED.findall(found[address].decode())} - found.keys()
    return found


def test_every_page_of_costs_is_small_at_its_first_load(db):
    cost_pages.month()
    own = cost_pages.of_allocation(cost_pages.running())
    too_large, charts = {}, 0
    for username, paths in (
        ("operator", (*cost_pages.FOR_STAFF, *cost_pages.FOR_ALL, *own)),
        ("vision-member", (*cost_pages.FOR_ALL, *own)),
    ):
        browser = browser_of(cost_pages.person(username))
        for path in paths:
            page = text(browser.get(path))
            files = static_files(set(LOADED.findall(page)))
            assert {"portal.css", "page.js", "pico.classless.min.css", "icons.svg"} <= {Path(one).name for one in files}
            has_chart = "data-chart" in page
            assert has_chart == any("uPlot" in one for one in files), path
            charts += has_chart
            total = compressed(page.encode()) + sum(map(compressed, files.values()))
            if total > (MOST_WITH_A_CHART if has_chart else MOST_BYTES):
                too_large[username, path] = total, compressed(page.encode())
    assert charts > 2
    assert too_large == {}
