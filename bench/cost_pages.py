"""The page of costs in Chromium against a static page of the same content: the time until most of it is painted.

Part of ``bench.rollups``, on its year of usage. Both pages are from one web server, with the same scripts and styles;
the static one is what the portal answered, kept as a file. Each is opened with an empty cache.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import urllib3
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, sync_playwright

from bench.kept_pages import KEPT
from bench.kept_pages import PATH as KEPT_PATH
from bench.statistics import compare
from bench.usage_year import END, START
from tests.services import free_port
from tests.support.people import person

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
ROUNDS = 15
WARM_UP = 3
YEAR, OCTOBER = f"{START:%FT%TZ},{END:%FT%TZ}", "2025-10-01T00:00:00Z,2025-11-01T00:00:00Z"
PATHS = {
    "costs by team, 12 months": f"/costs?window={YEAR}&aggregate=team&accumulate=month&idle=hide",
    "costs by offering, a month": f"/costs?window={OCTOBER}&aggregate=offering&idle=hide",
}
PAINTED = """
    () => new Promise(done => new PerformanceObserver(found => done(found.getEntries().at(-1).startTime))
        .observe({type: 'largest-contentful-paint', buffered: true}))
"""
"""The largest contentful paint in ms: w3.org/TR/largest-contentful-paint."""


class Visit(NamedTuple):
    """An address with the cookies to open it, and the name of the file of its answer."""

    path: str
    cookies: Mapping[str, str]
    kept: str


def measure() -> dict[str, Any] | None:
    """Return the largest contentful paint by page, in seconds; None without Chromium."""
    program = shutil.which("chromium")
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gpu-portal-bench-") as folder:
        visits = {name: _visit(path, Path(folder) / str(number)) for number, (name, path) in enumerate(PATHS.items())}
        with _server(folder) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            try:
                return {name: _measure(browser, url, visit) for name, visit in visits.items()}
            finally:
                browser.close()


CONFIG = "--config=python:portal.server.config"


@contextmanager
def _server(folder: str) -> Iterator[str]:
    """Run gunicorn on this database as `deploy.local` does, with few threads, so that all have connected soon."""
    database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    address = f"127.0.0.1:{free_port()}"
    words = ("gunicorn.app.wsgiapp", "bench.kept_pages", f"--bind={address}", "--workers=1", "--threads=2", CONFIG)
    environ = {**os.environ, "DATABASE_URL": urlunsplit(database), KEPT: folder}
    with subprocess.Popen([sys.executable, "-m", *words], env=environ, stderr=subprocess.DEVNULL) as process:
        try:
            _until_it_answers(f"http://{address}/login")
            yield f"http://{address}"
        finally:
            process.terminate()


def _until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            urllib3.request("GET", url, retries=False)
        except urllib3.exceptions.HTTPError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _visit(path: str, kept: Path) -> Visit:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person(platform_role="auditor"))
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content.decode()[:300]}")
    headers = [(name, value) for name, value in answer.items() if name != "Set-Cookie"]
    kept.write_text(json.dumps({"headers": headers, "body": answer.content.decode()}))
    return Visit(path, {name: one.value for name, one in client.cookies.items()}, kept.name)


def _measure(browser: Browser, url: str, visit: Visit) -> dict[str, Any]:
    cookies = [{"name": name, "value": value, "url": url} for name, value in visit.cookies.items()]
    series: tuple[list[float], list[float]] = ([], [])
    for number in range(WARM_UP + ROUNDS):
        for side, path in enumerate((visit.path, KEPT_PATH + visit.kept)):
            painted = _painted(browser, url + path, cookies)
            if number >= WARM_UP:
                series[side].append(painted)
    return compare(*series).document()


def _painted(browser: Browser, address: str, cookies: list[Any]) -> float:
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        page.goto(address, wait_until="networkidle")
        return float(page.evaluate(PAINTED)) / 1000
