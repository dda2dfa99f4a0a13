"""Runs Debian's Chromium against the portal's own web server and database; these tests need no cluster."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from demo import prices
from portal.core import heartbeat
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from tests.support import api_contract
from tests.support.browser import Open, with_password
from tests.support.people import person
from tests.support.quotas import cluster

REPOSITORY = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The former has no user interface, and takes a third less of the processors."""
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PATIENCE_MS = 30_000  # a busy machine is no failure
expect.set_options(timeout=PATIENCE_MS)
# Playwright keeps an event loop in this thread, in which Django would refuse to touch its database.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(
                    pytest.mark.skip(reason="Chromium is not on PATH: apt-get install chromium-headless-shell")
                )


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the docs, built as `make docs` does, which reads again only what has changed since."""
    build = REPOSITORY / "docs" / "build"
    build.mkdir(exist_ok=True)
    kept = f"--doctree-dir={build}/doctrees"
    with (build / "lock").open("w") as lock:
        flock(lock, LOCK_EX)  # other workers build it too
        subprocess.run([sys.executable, "-m", "sphinx", "-q", kept, "docs", build / "html"], cwd=REPOSITORY, check=True)
    return build / "html"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, live_server: LiveServer) -> Iterator[Open]:
    """Return a function that opens pages in contexts of their own; a script error or CSP violation fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            complaints.append(message.text)

    def open_(**options: Any) -> Page:
        context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_
    for context in contexts:
        context.close()
    api_contract.wait_until_answered()
    assert not complaints


@pytest.fixture
def team(transactional_db: None) -> Team:
    """Return a team that may hold four of eight l40s."""
    team = tenants.create_team(SYSTEM, tenants.create_department(SYSTEM, "research", "Research"), "vision", "Vision")
    cluster()
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 4)
    prices.price()
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    return team


@pytest.fixture
def project(team: Team) -> Project:
    return tenants.create_project(SYSTEM, team, "vision-train", "Vision training")


@pytest.fixture
def member(team: Team, project: Project) -> User:
    return with_password(person(team))
