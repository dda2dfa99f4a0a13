"""Home: the person's active and queued allocations, and the sections that the person's roles add."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from allocations.queues import queue
from allocations.requests import details, selectors
from frontend.pages import PageRequest, page, show
from frontend.poll_version import unchanged, version
from frontend.presenters.allocations import cards
from frontend.presenters.audit import lines
from frontend.presenters.contacts import who_to_ask
from frontend.presenters.home import health, leads, operators
from frontend.presenters.offerings import headroom
from portal.core import clock
from portal.core.reading import digest_of
from portal.http import own_writes
from portal.tenants import access, audit_log, invitations
from portal.tenants.audit_log import Search
from portal.tenants.models import Membership, PlatformRole, Role, Team, User
from quotas.costs.calendar import Calendar

MAX_ROWS = 100
LATEST_ENTRIES = 10
Section = Callable[[User, Sequence[Membership]], dict[str, Any]]


@require_safe
@page
def home(request: PageRequest) -> HttpResponse:
    """Show the page, or for htmx the person's rows, or one section of the person's roles (``part``)."""
    memberships = list(Membership.objects.filter(user=request.user).select_related("team"))
    sections = _sections(request.user, memberships)
    if request.htmx and (part := request.GET.get("part")):
        return _part(request, part, sections, memberships)
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
    context = {
        "running": [card for card in found if card.is_running],
        "waiting": [card for card in found if not card.is_running],
        "version": current,
        "is_member": bool(memberships),
        "is_home": bool(sections),
        "is_new": not rows and not selectors.listed(request.user).filter(requested_by=request.user).exists(),
        "who_to_ask": [] if memberships else who_to_ask(request.user),
    }
    if not request.htmx:
        teams = [one.team for one in memberships]
        context |= {
            "teams": headroom(teams, _availability(request.user, teams)),
            "invitations": invitations.received(request.user),
            "sections": [_shown(name, section(request.user, memberships)) for name, section in sections.items()],
        }
    return show(request, "frontend/home.html", context, partial="rows")


def _part(
    request: PageRequest, name: str, sections: Mapping[str, Section], memberships: Sequence[Membership]
) -> HttpResponse:
    """Return a section for a poll: 204 if it has not changed, or if the person has the role no longer."""
    if name not in sections:
        return HttpResponse(status=204)
    found = _shown(name, sections[name](request.user, memberships))
    return unchanged(request, found["version"]) or render(request, found["template"], {"section": found})


def _shown(name: str, context: dict[str, Any]) -> dict[str, Any]:
    """Return the section with its name and template, and a version that changes with what it shows."""
    return {**context, "name": name, "template": f"frontend/home/{name}.html", "version": digest_of(context)}


def _sections(user: User, memberships: Sequence[Membership]) -> dict[str, Section]:
    """Return what the person's roles add, in the order of the page."""
    found: dict[str, Section] = {}
    if user.platform_role == PlatformRole.OPERATOR:
        found["operators"] = _operators
    if user.platform_role == PlatformRole.AUDITOR:
        found["auditors"] = _auditors
    if any(one.role == Role.LEAD for one in memberships):
        found["leads"] = _leads
    return found


def _leads(user: User, memberships: Sequence[Membership]) -> dict[str, Any]:
    teams = [one.team for one in memberships if one.role == Role.LEAD]
    return {"found": leads.of_teams(user, teams, Calendar(timezone.get_current_timezone()))}


def _operators(user: User, memberships: Sequence[Membership]) -> dict[str, Any]:
    found = operators.operations(user, fleet(own_writes.fleet_max_age_s(user.pk)))
    return {"found": found, "checks": health.checks()}


def _auditors(user: User, memberships: Sequence[Membership]) -> dict[str, Any]:
    rows = audit_log.matching(user, Search()).order_by("-pk")[:LATEST_ENTRIES]
    return {"lines": lines(rows)}


def _availability(user: User, teams: list[Team]) -> Availability:
    return Availability(teams, user=user, fleet=fleet(own_writes.fleet_max_age_s(user.pk)))
