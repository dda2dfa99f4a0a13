"""People and roles: who has which role in which team."""

from django.db.models import Prefetch
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from frontend.menu import ADMIN, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.tables import Column, sorting
from portal.tenants import access, members
from portal.tenants.models import Project, Role

PAGE_SIZE = 50
COLUMNS = (
    Column("person", "Person", "user__username"),
    Column("team", "Team", "team__slug"),
    Column("role", "Role", "role"),
    Column("platform", "Platform role", "user__platform_role"),
    Column("projects", "Projects"),
)


@require_safe
@page
def people(request: PageRequest) -> HttpResponse:
    """List the members of the teams the person may see, by name; ``q`` finds people and teams by a part of the name,
    ``role`` those with a role. Platform staff see who has a platform role, too.
    """
    name, role = (request.GET.get(field, "").strip().replace("\x00", "") for field in ("q", "role"))
    live = Project.objects.filter(archived_at=None).order_by("slug")
    rows = members.visible(request.user, name).prefetch_related(Prefetch("team__projects", live, "live_projects"))
    rows, order = rows.filter(role=role) if role else rows, sorting(request, COLUMNS)
    found = paged(request, order.query(rows, "user__username", "team__slug"), "page", PAGE_SIZE)
    staff = members.with_platform_role(name) if access.sees_all(request.user) else []
    context = {"found": found, "sorting": order, "staff": staff, "name": name, "role": role, "roles": Role.choices}
    return show(request, "frontend/people.html", context)


urlpatterns = [
    path("people", people, name="people"),
]
DOCS = "how-to/members"
MENU = {"people": Item(ADMIN, 20, "People")}
