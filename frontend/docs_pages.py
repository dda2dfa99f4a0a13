"""Which page of the docs explains a page of the portal."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from portal.tenants.models import PlatformRole, User

TITLES = {
    "start/engineer": "Your first GPU",
    "concepts/capacity": "GPU-hours by category",
    "concepts/lending": "Lending between teams",
    "concepts/limits": "Limits",
    "concepts/tenants": "Departments, teams, projects",
    "how-to/archive-a-project": "Archive a project",
    "how-to/adopt-a-namespace": "Adopt a namespace",
    "how-to/connect": "Use your GPUs in pods",
    "how-to/costs": "Read costs",
    "how-to/extend-and-release": "Extend or release an allocation",
    "how-to/jobs": "Queue a Job with kubectl",
    "how-to/keyboard": "Use the portal by keyboard",
    "how-to/kubectl": "Use kubectl without an allocation",
    "how-to/members": "Invite people to a team",
    "how-to/move-a-project": "Move a team or project",
    "how-to/object-limits": "Change how many objects a project may have",
    "how-to/offer-gpus": "Offer a new kind of GPU",
    "how-to/request": "Request GPUs",
    "how-to/savings": "Find what can be saved",
    "how-to/set-limits": "Set a limit",
    "how-to/tokens": "Create and revoke a token",
    "how-to/waiting": "Find out why a request waits",
    "operate/audit": "The audit log",
    "operate/prices": "Prices, costs and bills",
    "operate/troubleshoot": "Troubleshoot",
}
"""Pages of the docs and their headings."""
PAGES = {
    "start/engineer": ("home",),
    "how-to/request": ("request",),
    "how-to/extend-and-release": ("allocations", "release", "extend"),
    "how-to/connect": ("allocation", "allocation-pods"),
    "how-to/costs": (
        "costs",
        "costs-allocation",
        "costs-forecast",
        "cost-assets",
        "cost-assets-node",
        "my-cost",
        "team-cost",
        "project-cost",
        "allocation-cost",
        "job-cost",
    ),
    "concepts/capacity": ("costs-fleet", "proof"),
    "how-to/savings": ("savings",),
    "operate/prices": (
        *("prices", "public-prices", "set-price", "set-node-cost", "set-node-term", "import-prices", "withdraw"),
        *("bills", "enter-bill", "set-fixed-cost"),
    ),
    "operate/troubleshoot": ("fleet", "fleet-node"),
    "how-to/offer-gpus": ("flavors", "flavor", "unaccept-flavor"),
    "concepts/lending": ("kueue",),
    "how-to/jobs": ("job",),
    "how-to/waiting": ("queue",),
    "concepts/limits": ("limits",),
    "how-to/set-limits": ("limit", "change-limits", "remove-limit"),
    "operate/audit": ("audit",),
    "how-to/members": ("people", "teams", "team", "remove-member"),
    "concepts/tenants": (
        *("tenants", "new-department", "edit-department", "new-team", "edit-team", "delete-team"),
        *("new-project", "project"),
    ),
    "how-to/move-a-project": ("move",),
    "how-to/archive-a-project": ("archive",),
    "how-to/adopt-a-namespace": ("guard",),
    "how-to/kubectl": ("project-kubeconfig",),
    "how-to/object-limits": ("object-limits",),
    "how-to/tokens": ("me", "revoke-token"),
    "how-to/keyboard": ("shortcuts",),
}
"""The routes that each page of the docs explains."""
HOMES: dict[str, str] = {PlatformRole.OPERATOR: "operate/troubleshoot", PlatformRole.AUDITOR: "how-to/costs"}
"""What explains Home instead to people with these platform roles."""
OF_ROUTE = {route: name for name, routes in PAGES.items() for route in routes}


@dataclass(frozen=True)
class DocsPage:
    title: str
    url: str


def of_request(request: HttpRequest) -> DocsPage | None:
    """Return the page of the docs that explains the page of this request, if one does."""
    match = request.resolver_match
    name = OF_ROUTE.get(match.url_name or "") if match else None
    if name == OF_ROUTE["home"] and isinstance(request.user, User):
        name = HOMES.get(request.user.platform_role, name)
    return DocsPage(TITLES[name], f"{reverse('docs')}{name}.html") if name else None
