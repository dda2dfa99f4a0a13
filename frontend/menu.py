"""The sections of the navigation that have several pages. A module of views says as `MENU` which of its pages are in
them, by the names of their routes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

from frontend import views
from portal.core.modules import modules_of
from portal.tenants import access
from portal.tenants.access import Person

USAGE, COSTS, ADMIN = SECTIONS = ("Usage", "Costs", "Admin")


@dataclass(frozen=True)
class Item:
    """A page of a section, in the order of ``place``; of those that are not for all, platform staff alone is shown."""

    section: str
    place: int
    word: str
    is_for_all: bool = False


@dataclass(frozen=True)
class Link:
    """An address of the navigation. ``current`` is ``page`` on that page, ``true`` on one below it, else empty."""

    url: str
    word: str
    current: str = ""


def items(user: Person) -> dict[str, Item]:
    """Return the pages of all sections that the person may see, by the names of their routes."""
    sees_all = access.sees_all(user)
    return {name: item for name, item in _items().items() if sees_all or item.is_for_all}


def link(url: str, word: str, path: str, current: str) -> Link:
    """Return a link on the page with this path, which belongs to the address ``current``."""
    return Link(url, word, "" if url != current else "page" if path == url else "true")


def address_of(path: str, urls: Iterable[str]) -> str:
    """Return to which of these addresses of the navigation the page with this path belongs; "" if to none."""
    known = {*urls}
    if path.endswith("/costs"):
        return reverse("costs")
    found = [url for url in known if path == url or (url != "/" and path.startswith(f"{url}/"))]
    tenants = reverse("tenants")
    is_of_tenants = tenants in known and path.startswith(("/teams", "/projects"))
    return max(found, key=len, default=tenants if is_of_tenants else "")


@cache
def _items() -> dict[str, Item]:
    found = {name: item for module in modules_of(views) for name, item in getattr(module, "MENU", {}).items()}
    return dict(sorted(found.items(), key=lambda pair: (SECTIONS.index(pair[1].section), pair[1].place)))
