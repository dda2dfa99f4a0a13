"""What frames every page: the navigation of the person's roles, and the banners."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from frontend import banners, docs_pages, menu
from frontend.menu import Link
from portal.core.reading import read_tables
from portal.tenants import access
from portal.tenants.models import PlatformRole, Role, User

SHORTCUTS_COOKIE = "shortcuts"
"""``off`` for who turned off the keys of one letter."""


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return what `base.html` shows of the person and of the portal; one query."""
    user = request.user
    *found, roles = read_tables(*banners.parts(), access.roles_in_teams(user))
    shown: dict[str, Any] = {
        "banners": banners.of_parts(found),
        "navigation": [],
        "section_pages": [],
        "may_request": False,
    }
    if isinstance(user, User):
        names = {role for _, role in roles}
        shown["navigation"], shown["section_pages"] = links(user, names, request.path)
        shown |= {"may_request": may_request(user, names), "docs_page": docs_pages.of_request(request, names)}
    return shown


def may_request(user: User, roles: AbstractSet[str]) -> bool:
    """Return whether a person with these roles in teams may request GPUs in some project."""
    return bool(roles & {Role.MEMBER, Role.LEAD}) or user.platform_role == PlatformRole.OPERATOR


def words(user: User, roles: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Yield names of addresses and their words: what each role uses most comes first."""
    platform = user.platform_role
    yield "home", "Home" if platform or Role.LEAD in roles else "My GPUs"
    if platform:
        yield "fleet", "Fleet"
    if may_request(user, roles):
        yield "request", "Request"
    yield "allocations", "Allocations"
    yield "limits", "Limits"
    if Role.LEAD in roles:
        yield "teams", "Teams"


def links(user: User, roles: AbstractSet[str], path: str) -> tuple[list[Link], list[Link]]:
    """Return the navigation of a page with this path, and the pages of its section. At most one link of each is
    current.
    """
    pages = {reverse(name): word for name, word in words(user, roles)}
    of_sections: dict[str, dict[str, str]] = {}
    for name, item in menu.items(user).items():
        of_sections.setdefault(item.section, {})[reverse(name)] = item.word
    current = menu.address_of(path, [*pages, *(url for of_one in of_sections.values() for url in of_one)])
    navigation = [menu.link(url, word, path, current) for url, word in pages.items()]
    section: list[Link] = []
    for word, of_one in of_sections.items():
        first = next(iter(of_one))
        navigation.append(menu.link(first, word, path, first if current in of_one else ""))
        if current in of_one:
            section = [menu.link(url, title, path, current) for url, title in of_one.items()]
    return navigation, section
