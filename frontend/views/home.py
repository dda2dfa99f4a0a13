"""My GPUs: the person's active and queued allocations, and the teams' headroom."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from allocations.capacity.headroom import Availability
from allocations.queues import queue
from allocations.requests import selectors
from frontend.pages import PageRequest, page, show
from frontend.poll_version import unchanged, version
from frontend.presenters.allocations import cards
from frontend.presenters.offerings import headroom
from portal.core import clock
from portal.tenants import access, invitations
from portal.tenants.models import Team

MAX_ROWS = 100


@require_safe
@page
def home(request: PageRequest) -> HttpResponse:
    own = selectors.visible(request.user).filter(requested_by=request.user, ended_at=None)
    current = version(own)
    if same := unchanged(request, current):
        return same
    rows = list(own[:MAX_ROWS])
    found = cards(
        rows,
        selectors.details(rows),
        queue.positions(rows),
        access.permissions_of(request.user),
        clock.now(),
    )
    teams = list(Team.objects.filter(memberships__user=request.user))
    context = {
        "running": [card for card in found if card.is_running],
        "waiting": [card for card in found if not card.is_running],
        "version": current,
        "teams": headroom(teams, Availability(teams, user=request.user)),
        "invitations": invitations.received(request.user),
        "is_member": bool(teams),
    }
    return show(request, "frontend/home.html", context, partial="rows")
