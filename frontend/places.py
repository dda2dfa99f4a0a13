"""Where the command palette leads: the pages of a person's roles, own allocations, projects and offerings."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from allocations.requests import selectors
from frontend import menu, navigation
from frontend.presenters import phases
from frontend.presenters.offerings import product
from portal.tenants import access
from portal.tenants.models import Membership, Role, User
from quotas.catalog import selectors as catalog

MOST = 50
"""Of each kind; a search finds the others."""


@dataclass(frozen=True)
class Place:
    """A link: what it is named, what it is, and its address."""

    title: str
    detail: str
    url: str


class Found(NamedTuple):
    places: list[Place]
    is_complete: bool
    """Whether no place was left out."""


def places(user: User, text: str = "") -> Found:
    """Return all pages that the person may open, and of the rest what contains ``text``, at most 50 of each kind."""
    memberships = list(Membership.objects.filter(user=user).select_related("team").order_by("team__slug"))
    kinds = [_allocations(user, text), _projects(user, text)]
    if navigation.may_request(user, {one.role for one in memberships}):
        kinds.append(_offerings(text))
    found = list(_pages(user, memberships))
    for kind in kinds:
        found += kind[:MOST]
    return Found(found, all(len(kind) <= MOST for kind in kinds))


def _pages(user: User, memberships: list[Membership]) -> Iterator[Place]:
    roles: AbstractSet[str] = {one.role for one in memberships}
    named = dict(navigation.words(user, roles)) | {"me": "Account and tokens", "teams": "Teams", "people": "People"}
    if Role.LEAD in roles:
        named["audit"] = "Audit log"
    named |= {"docs": "Docs", "api-docs": "REST API", "shortcuts": "Keyboard shortcuts"}
    of_sections = menu.items(user)
    for name, word in named.items():
        if name not in of_sections:
            yield Place(word, "Page", reverse(name))
    for name, item in of_sections.items():
        yield Place(item.word, f"Page of {item.section}", reverse(name))
    for one in memberships:
        yield Place(f"Queue of {one.team.slug}", "Page", reverse("queue", args=[one.team.slug]))
        yield Place(f"Team {one.team.slug}", one.team.name, reverse("team", args=[one.team.slug]))


def _allocations(user: User, text: str) -> list[Place]:
    """Return own allocations, those that have not ended first."""
    rows = selectors.visible(user).filter(requested_by=user, name__icontains=text).order_by("-ended_at", "-created_at")
    return [
        Place(row.name, f"{phases.badge(row).word} in {row.project.slug}", reverse("allocation", args=[row.pk]))
        for row in rows[: MOST + 1]
    ]


def _projects(user: User, text: str) -> list[Place]:
    rows = access.visible_projects(user).filter(archived_at=None, slug__icontains=text).order_by("slug")
    return [
        Place(row.slug, f"Project of {row.team.slug}", _address("allocations", project=row.slug))
        for row in rows[: MOST + 1]
    ]


def _offerings(text: str) -> list[Place]:
    rows = catalog.offerings().filter(key__icontains=text).order_by("key")
    return [
        Place(row.key, f"Request {product(row)}", _address("request", offering=row.key)) for row in rows[: MOST + 1]
    ]


def _address(name: str, **query: Any) -> str:
    return f"{reverse(name)}?{urlencode(query)}"
