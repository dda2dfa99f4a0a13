"""People and roles: who has which role in which team."""

from django.db.models import Prefetch
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from frontend.menu import ADMIN, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from portal.tenants import access, members
from portal.tenants.models import Project

PAGE_SIZE = 50


@require_safe
@page
def people(request: PageRequest) -> HttpResponse:
    """List the members of the teams the person may see, by name; ``q`` finds people and teams by a part of the name.
    Platform staff see who has a platform role, too.
    """
    name = request.GET.get("q", "").strip().replace("\x00", "")
    live = Project.objects.filter(archived_at=None).order_by("slug")
    rows = members.visible(request.user, name).prefetch_related(Prefetch("team__projects", live, "live_projects"))
    found = paged(request, rows.order_by("user__username", "team__slug"), "page", PAGE_SIZE)
    staff = members.with_platform_role(name) if access.sees_all(request.user) else []
    return show(request, "frontend/people.html", {"found": found, "staff": staff, "name": name})


urlpatterns = [
    path("people", people, name="people"),
]
DOCS = "how-to/members"
MENU = {"people": Item(ADMIN, 20, "People")}
