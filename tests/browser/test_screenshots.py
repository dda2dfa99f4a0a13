"""The pictures of the docs, taken of a demo with three simulated weeks; `make screenshots` writes them.

Without WRITE_SCREENSHOTS it checks only that the docs show every picture, each of at most 100 kB.
"""

import os
from pathlib import Path

import pytest
from django.test import override_settings
from playwright.sync_api import expect

from portal.core import heartbeat
from portal.tenants.models import User
from tests.support import cost_pages
from tests.support.browser import sign_in, with_password

FOLDER = Path(__file__).parents[2] / "docs" / "_images"
LARGEST = 100_000
PICTURES = {
    "request": ("vision-member", "/request", "Request GPU slices"),
    "costs": ("operator", "/costs?window=7d&aggregate=team", "Costs"),
    "limits": ("operator", "/limits", "Limits"),
}
"""Each picture: who sees it, its address, and the heading of the page."""


@pytest.mark.skipif(not os.environ.get("WRITE_SCREENSHOTS"), reason="make screenshots writes the pictures")
@override_settings(GPU_PORTAL_LOCAL=True)
def test_pictures_are_taken(transactional_db, open_page):
    cost_pages.past(21)
    FOLDER.mkdir(exist_ok=True)
    for name, (username, address, heading) in PICTURES.items():
        heartbeat.beat("worker")
        heartbeat.beat("watcher")
        person = with_password(User.objects.get(username=username))
        page = sign_in(open_page(color_scheme="light", viewport={"width": 900, "height": 600}), person)
        page.goto(address)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=FOLDER / f"{name}.png")


def test_every_picture_is_small_and_shown():
    found = {path.stem: path.stat().st_size for path in FOLDER.glob("*.png")}
    assert set(found) == set(PICTURES)
    assert {name: size for name, size in found.items() if size > LARGEST} == {}
    pages = "".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*/*.md"))
    assert [name for name in PICTURES if f"_images/{name}.png)" not in pages] == []
