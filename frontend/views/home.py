"""Home: the person's active and queued allocations, and the sections that the person's roles add."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any
from uuid import UUID

from django.http import HttpResponse
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
from frontend.presenters.allocations import Card
from frontend.presenters.audit import lines
from frontend.presenters.contacts import who_to_ask
from frontend.presenters.home import engineers, finance, leads, operators, quotas
from frontend.presenters.home.counters import Tile, joined, tiles
from portal.core import clock
from portal.core.reading import Rows, digest_of, read_tables
from portal.http import own_writes
from portal.tenants import audit_log, invitations
from portal.tenants.audit_log import Search
from portal.tenants.models import Invitation, Membership, PlatformRole, Role, Team, User
from quotas.costs import idle_holds
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


@require_safe
@essential_page
def home(request: PageRequest) -> HttpResponse:
    """Show the page, or for htmx what changes of it. Once other allocations run than before (``held``), the page loads
    their cost anew.
    """
    reader = Reader(request.user)
    listed = selectors.listed(request.user).filter(requested_by=request.user, ended_at=None)
    rows = list(listed[:MAX_ROWS])
    idle = idle_holds.since({row.pk: row.held_since for row in rows if row.held_since})
    sections = {name: read(reader) for name, read in _sections(reader).items()}
    current = digest_of(version(rows), sorted(idle.items()), sections)
    if same := unchanged(request, current):
        return same
    own = engineers.Own(cards_of(request.user, rows), idle, clock.now())
    running = [card for card in own.cards if card.is_running]
    can_request = any(one.role in (Role.MEMBER, Role.LEAD) for one in reader.memberships)
    context = {
        "counters": _counters(own, sections),
        "sections": [{"template": f"frontend/home/{name}.html", "found": found} for name, found in sections.items()],
        "running": [(card, own.idle_for(card)) for card in running],
        "held": digest_of([card.id for card in running]),
        "waiting": [card for card in own.cards if not card.is_running],
        "version": current,
        "is_member": bool(reader.memberships),
        "can_request": can_request,
        "is_home": bool(sections),
        "is_new": not rows and not selectors.listed(request.user).filter(requested_by=request.user).exists(),
        "who_to_ask": [] if can_request else who_to_ask(request.user),
    }
    if not request.htmx:
        context |= {"teams": quotas.of_teams(reader.teams, reader.availability), "invitations": reader.invitations}
    response = show(request, "frontend/home.html", context, partial="rows")
    has_changed = request.htmx and request.GET.get("held") != context["held"]
    return trigger_client_event(response, "rows-changed", after="settle") if has_changed else response


def _sections(reader: Reader) -> dict[str, Callable[[Reader], Any]]:
    """Return what reads the sections that the person's roles add, in the order of the page."""
    found: dict[str, Callable[[Reader], Any]] = {}
    if reader.user.platform_role == PlatformRole.OPERATOR:
        found["operators"] = _operators
    if reader.user.platform_role == PlatformRole.AUDITOR:
        found["auditors"] = _auditors
    if any(one.role == Role.LEAD for one in reader.memberships):
        found["leads"] = _leads
    return found


def _counters(own: engineers.Own, sections: Mapping[str, Any]) -> list[Tile]:
    """Return the strip of all roles of the person."""
    found = [tiles(COUNTERS[name], facts) for name, facts in sections.items()]
    return joined([*found, tiles(engineers.COUNTERS, own)] if own.cards else found)


def _leads(reader: Reader) -> leads.LedTeams:
    teams = [one.team for one in reader.memberships if one.role == Role.LEAD]

    def read_cards(ids: Collection[UUID]) -> list[Card]:
        return cards_of(reader.user, list(selectors.listed(reader.user).filter(pk__in=ids)))

    calendar = Calendar(timezone.get_current_timezone())
    return leads.of_teams(reader.user, teams, calendar, reader.availability, read_cards)


def _operators(reader: Reader) -> operators.Operations:
    return operators.operations(reader.user, reader.fleet, reader.availability.usage)


def _auditors(reader: Reader) -> finance.Finance:
    entries = audit_log.matching(reader.user, Search()).order_by("-pk")[:LATEST_ENTRIES]
    return finance.of_month(reader.user, Calendar(timezone.get_current_timezone()), lines(entries))


COUNTERS: Mapping[str, Any] = {
    "operators": operators.COUNTERS,
    "auditors": finance.COUNTERS,
    "leads": leads.COUNTERS,
}
urlpatterns = [
    path("", home, name="home"),
]
DOCS = "start/engineer"
