"""How a team or department shares and preempts."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from frontend.admin_forms import PolicyForm
from frontend.pages import PageRequest, page
from frontend.views.tenants import form_page
from portal.tenants import access
from portal.tenants.models import Department, Team
from quotas.limits import services


@require_http_methods(["GET", "HEAD", "POST"])
@page
def of_team(request: PageRequest, slug: str) -> HttpResponse:
    return _edit(request, access.team_for(request.user, slug), "team")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def of_department(request: PageRequest, slug: str) -> HttpResponse:
    return _edit(request, access.department_for(request.user, slug), "department")


def _edit(request: PageRequest, holder: Department | Team, kind: str) -> HttpResponse:
    policy = services.policy_to_change(request.user, holder)
    form = PolicyForm(holder, policy, request.POST or None)

    def save(values: dict[str, Any]) -> str:
        services.set_policy(request.user, holder, values)
        return f"Queue policy of {kind} {holder.slug} saved."

    words = {
        "title": f"Queue policy of {kind} {holder.slug}",
        "lead": "What applies when teams compete for GPUs that are lent. Kueue reads it within seconds.",
        "button": "Save",
        "back": f"{reverse('limits')}#competing",
    }
    return form_page(request, form, save, words)


urlpatterns = [
    path("limits/policies/teams/<str:slug>", of_team, name="team-policy"),
    path("limits/policies/departments/<str:slug>", of_department, name="department-policy"),
]
DOCS = "concepts/lending"
