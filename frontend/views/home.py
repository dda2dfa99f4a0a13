"""My GPUs: what a person holds and waits for, and what the teams may still get."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from allocations.capacity.headroom import Availability
from allocations.queues import queue
from allocations.requests import selectors
from frontend.pages import PageRequest, page, show
from frontend.presenters.allocations import cards
from frontend.presenters.offerings import headroom
from frontend.versions import unchanged, version
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
        queue.places(rows),
        access.standing(request.user),
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
