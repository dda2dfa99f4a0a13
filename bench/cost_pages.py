"""The page of costs in Chromium against a static page of the same content: the time until most of it is painted.

Part of ``bench.rollups``, on its year of usage. Both pages are from one server in this process, with the same scripts
and styles; the static one is what the server answered, kept as a file. Each is opened with an empty cache.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client
from django.test.testcases import LiveServerThread
from playwright.sync_api import Browser, sync_playwright

from bench.statistics import compare
from bench.usage_year import END, START
from tests.support.people import person

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
ROUNDS = 15
COPY = "/static-page"
YEAR, OCTOBER = f"{START:%FT%TZ},{END:%FT%TZ}", "2026-10-01T00:00:00Z,2026-11-01T00:00:00Z"
PATHS = {
    "costs by team, 12 months": f"/costs?window={YEAR}&aggregate=team&accumulate=month&idle=hide",
    "costs by offering, a month": f"/costs?window={OCTOBER}&aggregate=offering&idle=hide",
}
PAINTED = """
    () => new Promise(done => new PerformanceObserver(found => done(found.getEntries().at(-1).startTime))
        .observe({type: 'largest-contentful-paint', buffered: true}))
"""
"""The largest contentful paint in ms: w3.org/TR/largest-contentful-paint."""


class WithCopy:
    """Serves static files, the application, and the kept answer at COPY."""

    kept: tuple[list[tuple[str, str]], bytes] = ([], b"")

    def __init__(self, application: WSGIHandler) -> None:
        self._others: Any = StaticFilesHandler(application)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != COPY:
            answer: Iterable[bytes] = self._others(environ, start_response)
            return answer
        headers, body = WithCopy.kept
        start_response("200 OK", headers)
        return [body]


class Visit(NamedTuple):
    """An address with the cookies to open it, and what it answered: headers and body."""

    path: str
    cookies: Mapping[str, str]
    kept: tuple[list[tuple[str, str]], bytes]


def measure() -> dict[str, Any] | None:
    """Return the largest contentful paint by page, in seconds; None without Chromium."""
    program = shutil.which("chromium")
    if program is None:
        return None
    visits = {name: _visit(path) for name, path in PATHS.items()}
    with _server() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            return {name: _measure(browser, url, visit) for name, visit in visits.items()}
        finally:
            browser.close()


@contextmanager
def _server() -> Iterator[str]:
    handler: Any = WithCopy  # any application of WSGI will do
    thread = LiveServerThread("127.0.0.1", handler)
    thread.start()
    thread.is_ready.wait()
    if thread.error:
        raise thread.error
    try:
        yield f"http://127.0.0.1:{thread.port}"
    finally:
        thread.terminate()


def _visit(path: str) -> Visit:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person(platform_role="auditor"))
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content.decode()[:300]}")
    headers = [(name, value) for name, value in answer.items() if name != "Set-Cookie"]
    return Visit(path, {name: one.value for name, one in client.cookies.items()}, (headers, answer.content))


def _measure(browser: Browser, url: str, visit: Visit) -> dict[str, Any]:
    WithCopy.kept = visit.kept
    cookies = [{"name": name, "value": value, "url": url} for name, value in visit.cookies.items()]
    series: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        for side, path in enumerate((visit.path, COPY)):
            painted = _painted(browser, url + path, cookies)
            if number:
                series[side].append(painted)
    return compare(*series).document()


def _painted(browser: Browser, address: str, cookies: list[Any]) -> float:
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        page.goto(address, wait_until="networkidle")
        return float(page.evaluate(PAINTED)) / 1000
