"""Which page of the docs explains a page of the portal: `DOCS` of its module of views, unless `DOCS_OF` has another for
the name of its route.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from frontend import views
from portal.core.modules import modules_of
from portal.tenants.models import PlatformRole, Role, User

HOMES: dict[str, str] = {
    PlatformRole.OPERATOR: "operate/troubleshoot",
    PlatformRole.AUDITOR: "how-to/costs",
    Role.LEAD: "start/lead",
}
"""What explains Home instead to people with these roles, the first that one has."""


@dataclass(frozen=True)
class DocsPage:
    title: str
    url: str


def of_request(request: HttpRequest, roles: AbstractSet[str] = frozenset()) -> DocsPage | None:
    """Return the page of the docs that explains the page of this request, if one does, to a person who has these roles
    in teams.
    """
    match = request.resolver_match
    route = (match.url_name or "") if match else ""
    name = of_routes().get(route)
    if route == "home" and isinstance(request.user, User):
        name = next((page for role, page in HOMES.items() if role in {request.user.platform_role, *roles}), name)
    return DocsPage(title(name), f"{reverse('docs')}{name}.html") if name else None


@cache
def of_routes() -> dict[str, str]:
    """Return the page of the docs of each route, by its name."""
    found: dict[str, str] = {}
    for module in modules_of(views):
        if docs := getattr(module, "DOCS", ""):
            found |= {route.name: docs for route in module.urlpatterns if route.name} | getattr(module, "DOCS_OF", {})
    return found


@cache
def title(name: str) -> str:
    """Return the heading of a page of the docs, such as ``how-to/costs``."""
    with (settings.BASE_DIR / "docs" / f"{name}.md").open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()
