"""The platform role of a person, which operators give and take."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from frontend.admin_forms import PlatformRoleForm
from frontend.pages import PageRequest, page
from frontend.views.tenants import form_page
from portal.tenants import people


@require_http_methods(["GET", "HEAD", "POST"])
@page
def platform_role(request: PageRequest) -> HttpResponse:
    """Change the platform role of a person. ``username`` in the address fills in who."""
    row = people.to_change(request.user, request.GET.get("username", ""))
    known = {"username": row.username, "platform_role": row.platform_role}
    form = PlatformRoleForm(request.POST or None, initial=known)

    def save(values: dict[str, Any]) -> str:
        row, role = people.person(request.user, values["username"]), values["platform_role"]
        people.change(request.user, row, {"platform_role": role} if role != row.platform_role else {})
        return f"{row.username} is now {role}." if role else f"{row.username} has no platform role now."

    words = {
        "title": "Set a platform role",
        "lead": "A platform role applies to all teams. It comes beside the roles in teams.",
        "button": "Save",
        "back": reverse("people"),
    }
    return form_page(request, form, save, words)


urlpatterns = [
    path("people/platform-role", platform_role, name="platform-role"),
]
DOCS = "how-to/members"
