"""My GPUs: the person's active and queued allocations, and the teams' headroom."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from allocations.queues import queue
from allocations.requests import details, selectors
from frontend.pages import PageRequest, page, show
from frontend.poll_version import unchanged, version
from frontend.presenters.allocations import cards
from frontend.presenters.offerings import headroom
from portal.core import clock
from portal.http import own_writes
from portal.tenants import access, invitations
from portal.tenants.models import Team, User

MAX_ROWS = 100


@require_safe
@page
def home(request: PageRequest) -> HttpResponse:
    own = selectors.listed(request.user).filter(requested_by=request.user, ended_at=None)
    rows = list(own[:MAX_ROWS])
    current = version(rows)
    if same := unchanged(request, current):
        return same
    found = cards(
        rows,
        details.by_id(rows),
        queue.positions(rows),
        access.permissions_of(request.user),
        clock.now(),
    )
    teams = list(Team.objects.filter(memberships__user=request.user))
    context = {
        "running": [card for card in found if card.is_running],
        "waiting": [card for card in found if not card.is_running],
        "version": current,
        "teams": headroom(teams, _availability(request.user, teams)),
        "invitations": invitations.received(request.user),
        "is_member": bool(teams),
    }
    return show(request, "frontend/home.html", context, partial="rows")


def _availability(user: User, teams: list[Team]) -> Availability:
    return Availability(teams, user=user, fleet=fleet(own_writes.fleet_max_age_s(user.pk)))
