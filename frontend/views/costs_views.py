"""Saved views of costs: saving one, and deleting it."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from frontend.pages import PageRequest, page
from frontend.presenters.costs_address import address_of
from portal.core.errors import Invalid, Refused
from portal.tenants import access
from quotas.costs import saved_views


@require_POST
@page
def save(request: PageRequest) -> HttpResponse:
    """Save the view for the person, or for a team."""
    user, query, slug = request.user, request.POST.get("query", ""), request.POST.get("team", "")
    team = access.team_for(user, slug) if slug else None
    try:
        row = saved_views.save(user, request.POST.get("name", ""), query, team)
    except (Invalid, Refused) as problem:
        found = [message for each in problem.errors.values() for message in each] or [problem.detail, problem.hint]
        messages.error(request, " ".join(found))
    else:
        messages.success(request, f"View {row.name} saved for {f'team {team.slug}' if team else 'you'}.")
    return redirect(address_of(QueryDict(query), "").page())


@require_POST
@page
def delete(request: PageRequest, view_id: int) -> HttpResponse:
    """Delete a view, and stay at the one that was open."""
    row = saved_views.get(request.user, view_id)
    saved_views.delete(request.user, row)
    messages.success(request, f"View {row.name} deleted.")
    return redirect(address_of(QueryDict(request.POST.get("query", "")), "").page())


urlpatterns = [
    path("costs/views", save, name="save-view"),
    path("costs/views/<int:view_id>/delete", delete, name="delete-view"),
]
DOCS = "how-to/costs"
