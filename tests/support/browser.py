"""Signing in with a browser, counting clicks, and the sizes of windows."""

from collections.abc import Callable
from http import HTTPStatus

from playwright.sync_api import Locator, Page

from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from tests.support.cluster.waiting import eventually

Open = Callable[..., Page]
"""Opens a page in a context of its own, with the options of Playwright's ``new_context``."""
PASSWORD = "a long enough secret"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 780}


class Clicks:
    """Clicks and counts them."""

    def __init__(self) -> None:
        self.number = 0

    def on(self, place: Locator) -> None:
        place.click()
        self.number += 1


def with_password(user: User) -> User:
    tenants.set_password(SYSTEM, user, PASSWORD)
    return user


def sign_in(page: Page, user: User) -> Page:
    """Sign in, again while the portal says that it cannot count attempts now: a busy machine is slow to ask Redis."""
    eventually(lambda: _send(page, user) != HTTPStatus.SERVICE_UNAVAILABLE)
    page.wait_for_url("/")
    return page


def _send(page: Page, user: User) -> int:
    """Send the form of the page to sign in; return the status of the answer."""
    page.goto("/")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
        page.get_by_role("button", name="Sign in").click()
    return answered.value.status
