"""Pages as production serves them: digests in the names of static files, compressed, and kept by browsers.

With WRITE_PAGE_WEIGHTS the bytes, requests and paint of each page are written to docs/appendix/pages.md.
"""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.test import override_settings
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from frontend.templatetags import portal as tags
from portal.tenants.models import Project, User
from tests.support import cost_pages
from tests.support.browser import sign_in, with_password
from tests.support.pages import held, requested

GUIDE = Path(__file__).parents[2] / "docs" / "appendix" / "pages.md"
BUNDLED = {"BACKEND": "frontend.static_storage.BundledStaticFilesStorage"}
OTHERS = ["admin/*", "rest_framework/*", "drf_spectacular_sidecar/*"]
"""Files of pages that are not the portal's own."""
YEAR_S = 365 * 24 * 3600
HOME_FIRST, HOME_AFTER = 64_000, 20_000
"""Most bytes of home: with an empty cache, and with what a browser has kept."""
MOST_FIRST, WITH_A_CHART, MOST_AFTER = 80_000, 100_000, 40_000
"""Likewise of any other page of the table, headers and uncompressed pages included."""
PAINTED = """
    () => new Promise(done => new PerformanceObserver(found => done(found.getEntries().at(-1).startTime))
        .observe({type: 'largest-contentful-paint', buffered: true}))
"""
PATHS = {
    "home": "/",
    "request": "/request",
    "allocations": "/allocations",
    "allocation": "/allocations/{id}",
    "costs": "/costs",
    "fleet": "/fleet",
    "limits": "/limits",
    "docs": "/docs/",
}


class Weight(NamedTuple):
    """Bytes on the wire with headers, requests that left the browser, and the largest contentful paint in ms."""

    size: int
    requests: int
    paint_ms: float


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `manage.py collectstatic` filled."""
    folder = tmp_path_factory.mktemp("static")
    with override_settings(STATIC_ROOT=folder, STORAGES=_storages()):
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=OTHERS)
    return folder


@pytest.fixture
def live_server(collected: Path, settings: Any, transactional_db: None) -> Any:
    """Return a server as in production: static files come from WhiteNoise."""
    settings.STATIC_ROOT, settings.STORAGES = collected, _storages()
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = False
    tags.icon.cache_clear()
    tags.phase.cache_clear()
    server = LiveServer("localhost", start=False)
    server.thread.static_handler = lambda _: WSGIHandler()  # type: ignore[assignment]
    server.start()
    yield server
    server.stop()
    tags.icon.cache_clear()
    tags.phase.cache_clear()


def _storages() -> dict[str, Any]:
    return {"default": {"BACKEND": "django.core.files.storage.FileSystemStorage"}, "staticfiles": BUNDLED}


@pytest.fixture
def demo(live_server: Any) -> Project:
    """Return the member's project in a demo with three simulated days."""
    cost_pages.past(3)
    return Project.objects.filter(team__slug="vision", archived_at=None).order_by("slug")[0]


def weigh(page: Page, path: str) -> Weight:
    """Open the page and wait until it asks for nothing more."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: dict[str, int] = {}
    kept: set[str] = set()
    session.on("Network.requestServedFromCache", lambda event: kept.add(event["requestId"]))
    session.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    page.goto(path)
    page.wait_for_load_state("networkidle")
    painted = float(page.evaluate(PAINTED))
    session.detach()
    sent = [size for request, size in sizes.items() if size and request not in kept]
    return Weight(sum(sent), len(sent), painted)


def test_static_files_are_compressed_and_kept_for_a_year(open_page, member):
    page = open_page()
    page.goto("/login")
    with page.expect_response(re.compile(r"/static/.*\.css")) as styles:
        page.reload()
    address = styles.value.url
    assert re.search(r"/portal\.[0-9a-f]{12}\.css$", address)
    found = {}
    for encoding in ("br", "gzip", "identity"):
        answer = page.request.get(address, headers={"Accept-Encoding": encoding})
        found[encoding] = answer.headers.get("content-encoding", "identity")
        assert "Accept-Encoding" in answer.headers["vary"]
        kept = dict(re.findall(r"([\w-]+)(?:=(\d+))?", answer.headers["cache-control"]))
        assert "immutable" in kept and "public" in kept
        assert int(kept["max-age"]) >= YEAR_S
    assert found == {"br": "br", "gzip": "gzip", "identity": "identity"}


def test_the_browser_waits_for_one_style_sheet_and_asks_for_no_file_without_a_digest(open_page, member):
    page = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, member)
    page.wait_for_load_state("networkidle")
    static = {url for url in asked if "/static/" in url}
    assert len([url for url in static if url.endswith(".css")]) == 1
    assert [url for url in static if not re.search(r"\.[0-9a-f]{12}\.\w+(#\w+)?$", url)] == []


@pytest.mark.parametrize("username", ["vision-member", "vision-lead", "operator"])
def test_home_is_small_at_first_and_smaller_after(open_page, demo, username):
    member = User.objects.get(username="vision-member")
    held(requested(member, demo, name="training"), hours=2)
    cookies = sign_in(open_page(), with_password(User.objects.get(username=username))).context.cookies()
    page = open_page()
    page.context.add_cookies(cookies)
    first, after = weigh(page, "/"), weigh(page, "/")
    assert first.size <= HOME_FIRST, first
    assert after.size <= HOME_AFTER, after


@pytest.mark.usefixtures("site")
def test_every_page_is_weighed(open_page, demo, site, settings):
    settings.DOCS_ROOT = site
    member = User.objects.get(username="vision-member")
    row = held(requested(member, demo, name="training"), hours=2)
    table = {}
    for username in ("vision-member", "operator"):
        cookies = sign_in(open_page(), with_password(User.objects.get(username=username))).context.cookies()
        for name, path in PATHS.items():
            if (name == "fleet") != (username == "operator"):
                continue
            page = open_page()
            page.context.add_cookies(cookies)
            address = path.format(id=row.pk)
            table[name] = weigh(page, address), weigh(page, address)
            expect(page.get_by_role("heading", level=1).first).to_be_visible()
    if os.environ.get("WRITE_PAGE_WEIGHTS"):
        write(table)
    assert set(table) == set(PATHS)
    most = dict.fromkeys(PATHS, MOST_FIRST) | {"costs": WITH_A_CHART}
    assert {name: first.size for name, (first, _) in table.items() if first.size > most[name]} == {}
    assert {name: after.size for name, (_, after) in table.items() if after.size > MOST_AFTER} == {}


def write(table: dict[str, tuple[Weight, Weight]]) -> None:
    lines = [
        "# Bytes, requests and paint of pages\n",
        "For those who change pages. Made by `WRITE_PAGE_WEIGHTS=1 .venv/bin/python -m pytest "
        "tests/browser/test_static_files.py`, in Chromium, with static\nfiles as in production and a demo with three "
        "simulated days. First: with an empty cache. After: with what the browser has kept.\nBytes are those on the "
        "wire, with headers; pages themselves are not compressed, so that their length tells no secret.\n"
        "LCP is the largest contentful paint.\n",
        "| page | kB first | requests | LCP ms | kB after | requests | LCP ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in PATHS:
        first, after = table[name]
        cells = [f"{one.size / 1000:.1f} | {one.requests} | {one.paint_ms:.0f}" for one in (first, after)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    GUIDE.write_text("\n".join(lines) + "\n", encoding="utf-8")
