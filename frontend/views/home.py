"""Home: the person's active and queued allocations, and the sections that the person's roles add."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

from allocations.capacity.fleet import Fleet, fleet
from allocations.capacity.headroom import Availability
from allocations.requests import selectors
from frontend.allocation_cards import cards_of
from frontend.pages import PageRequest, essential_page, show
from frontend.poll_version import unchanged, version
from frontend.presenters.audit import lines
from frontend.presenters.contacts import who_to_ask
from frontend.presenters.home import health, leads, operators
from frontend.presenters.offerings import headroom
from portal.core.reading import Rows, digest_of, read_tables
from portal.http import own_writes
from portal.tenants import audit_log, invitations
from portal.tenants.audit_log import Search
from portal.tenants.models import Invitation, Membership, PlatformRole, Role, Team, User
from quotas.costs.calendar import Calendar

MAX_ROWS = 100
LATEST_ENTRIES = 10


class Reader:
    """A person, and what the parts of the page share; it is read when it is first needed."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.memberships: list[Membership]
        self.invitations: list[Invitation]
        memberships = Membership.objects.filter(user=user).select_related("team")
        self.memberships, self.invitations = read_tables(Rows(memberships), invitations.received_part(user))

    @property
    def teams(self) -> list[Team]:
        return [one.team for one in self.memberships]

    @cached_property
    def fleet(self) -> Fleet:
        return fleet(own_writes.fleet_max_age_s(self.user.pk))

    @cached_property
    def availability(self) -> Availability:
        return Availability(self.teams, user=self.user, fleet=self.fleet)


Section = Callable[[Reader], dict[str, Any]]


@require_safe
@essential_page
def home(request: PageRequest) -> HttpResponse:
    """Show the page, or for htmx the person's rows, or one section of the person's roles (``part``). Once other
    allocations run than before (``held``), the page loads their cost anew.
    """
    reader = Reader(request.user)
    sections = _sections(reader)
    if request.htmx and (part := request.GET.get("part")):
        return _part(request, part, sections, reader)
    own = selectors.listed(request.user).filter(requested_by=request.user, ended_at=None)
    rows = list(own[:MAX_ROWS])
    current = version(rows)
    if same := unchanged(request, current):
        return same
    found = cards_of(request.user, rows)
    running = [card for card in found if card.is_running]
    can_request = any(one.role in (Role.MEMBER, Role.LEAD) for one in reader.memberships)
    context = {
        "running": running,
        "held": digest_of([card.id for card in running]),
        "waiting": [card for card in found if not card.is_running],
        "version": current,
        "is_member": bool(reader.memberships),
        "can_request": can_request,
        "is_home": bool(sections),
        "is_new": not rows and not selectors.listed(request.user).filter(requested_by=request.user).exists(),
        "who_to_ask": [] if can_request else who_to_ask(request.user),
    }
    if not request.htmx:
        context |= {
            "teams": headroom(reader.teams, reader.availability),
            "invitations": reader.invitations,
            "sections": [_shown(name, section(reader)) for name, section in sections.items()],
        }
    response = show(request, "frontend/home.html", context, partial="rows")
    has_changed = request.htmx and request.GET.get("held") != context["held"]
    return trigger_client_event(response, "rows-changed", after="settle") if has_changed else response


def _part(request: PageRequest, name: str, sections: Mapping[str, Section], reader: Reader) -> HttpResponse:
    """Return a section for a poll: 204 if it has not changed, or if the person has the role no longer."""
    if name not in sections:
        return HttpResponse(status=204)
    found = _shown(name, sections[name](reader))
    return unchanged(request, found["version"]) or render(request, found["template"], {"section": found})


def _shown(name: str, context: dict[str, Any]) -> dict[str, Any]:
    """Return the section with its name and template, and a version that changes with what it shows."""
    return {**context, "name": name, "template": f"frontend/home/{name}.html", "version": digest_of(context)}


def _sections(reader: Reader) -> dict[str, Section]:
    """Return what the person's roles add, in the order of the page."""
    found: dict[str, Section] = {}
    if reader.user.platform_role == PlatformRole.OPERATOR:
        found["operators"] = _operators
    if reader.user.platform_role == PlatformRole.AUDITOR:
        found["auditors"] = _auditors
    if any(one.role == Role.LEAD for one in reader.memberships):
        found["leads"] = _leads
    return found


def _leads(reader: Reader) -> dict[str, Any]:
    teams = [one.team for one in reader.memberships if one.role == Role.LEAD]
    return {"found": leads.of_teams(reader.user, teams, Calendar(timezone.get_current_timezone()))}


def _operators(reader: Reader) -> dict[str, Any]:
    found = operators.operations(reader.user, reader.fleet, reader.availability.usage)
    return {"found": found, "checks": health.checks()}


def _auditors(reader: Reader) -> dict[str, Any]:
    rows = audit_log.matching(reader.user, Search()).order_by("-pk")[:LATEST_ENTRIES]
    return {"lines": lines(rows)}


urlpatterns = [
    path("", home, name="home"),
]
DOCS = "start/engineer"
