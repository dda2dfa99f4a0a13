"""What frames every page: the navigation of the person's roles, and the banners."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from frontend import banners, docs_pages, views
from frontend.presenters import costs_sections
from portal.core.modules import modules_of
from portal.core.reading import read_tables
from portal.tenants import access
from portal.tenants.models import PlatformRole, Role, User

SHORTCUTS_COOKIE = "shortcuts"
"""``off`` for who turned off the keys of one letter."""


@dataclass(frozen=True)
class Link:
    """An address of the navigation. ``current`` is ``page`` on that page, ``true`` on one below it, else empty."""

    url: str
    word: str
    current: str


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return what `base.html` shows of the person and of the portal; one query."""
    user = request.user
    *found, roles = read_tables(*banners.parts(), access.roles_in_teams(user))
    shown: dict[str, Any] = {"banners": banners.of_parts(found), "navigation": [], "may_request": False}
    if isinstance(user, User):
        names = {role for _, role in roles}
        shown["navigation"] = [_link(request.path, name, word) for name, word in words(user, names)]
        shown |= {"may_request": may_request(user, names), "docs_page": docs_pages.of_request(request, names)}
    return shown


def may_request(user: User, roles: AbstractSet[str]) -> bool:
    """Return whether a person with these roles in teams may request GPUs in some project."""
    return bool(roles & {Role.MEMBER, Role.LEAD}) or user.platform_role == PlatformRole.OPERATOR


def words(user: User, roles: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Yield names of addresses and their words: what each role uses most comes first."""
    platform = user.platform_role
    yield "home", "Home" if platform or Role.LEAD in roles else "My GPUs"
    if platform == PlatformRole.AUDITOR:
        yield "audit", "Audit log"
    if platform:
        yield "fleet", "Fleet"
    if may_request(user, roles):
        yield "request", "Request"
    yield "allocations", "Allocations"
    yield "costs", "Costs"
    yield "limits", "Limits"
    if Role.LEAD in roles:
        yield "teams", "Teams"


def menu(user: object) -> dict[str, str]:
    """Return the names of the addresses in the menu of platform staff, with their words, in the order of these: `MENU`
    of their modules of views.
    """
    return _menu() if isinstance(user, User) and user.platform_role else {}


@cache
def _menu() -> dict[str, str]:
    found = ((word, name) for module in modules_of(views) for name, word in getattr(module, "MENU", {}).items())
    return {name: word for word, name in sorted(found)}


def _link(path: str, name: str, word: str) -> Link:
    url = reverse(name)
    is_of_costs = costs_sections.is_of_costs(path)
    is_below = is_of_costs if name == "costs" else name != "home" and not is_of_costs and path.startswith(f"{url}/")
    return Link(url, word, "page" if path == url else "true" if is_below else "")
