"""The audit log: entries with their changes and sources."""

from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters.audit import lines
from portal.core.errors import Invalid
from portal.tenants import audit_log
from portal.tenants.audit_log import Search

PAGE_SIZE = 50
NAMED = ("actor", "action", "target", "team", "project")
FIELDS = (*NAMED, "since", "until", "q")
DAY = timedelta(days=1)


@require_safe
@page
def audit(request: PageRequest) -> HttpResponse:
    """List entries, newest first, with the filters of the address; `older` is the entry after which the page begins."""
    given = {name: request.GET.get(name, "").strip().replace("\x00", "") for name in FIELDS}
    context: dict[str, object] = {"given": given, "is_filtered": any(given.values()), "lines": [], "problem": None}
    context["named"] = [(name, name.capitalize(), given[name]) for name in NAMED]
    try:
        search, export = _search(given)
        rows = audit_log.matching(request.user, search)
        if older := request.GET.get("older", ""):
            rows = rows.filter(pk__lt=_whole(older))
    except Invalid as problem:
        return show(request, "frontend/audit.html", {**context, "problem": problem}, status=problem.status)
    found = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    context |= {
        "lines": lines(found[:PAGE_SIZE]),
        "older": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
        "is_first": not older,
        "export": urlencode(export),
    }
    return show(request, "frontend/audit.html", context)


def _search(fields: dict[str, str]) -> tuple[Search, dict[str, str]]:
    """Return the search, and its parameters for REST. Days are the reader's; the last one is included."""
    since, until = _midnight(fields, "since"), _midnight(fields, "until", DAY)
    named = {name: (fields[name],) if fields[name] else () for name in NAMED}
    times = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at}
    said = {name: fields[name] for name in (*NAMED, "q") if fields[name]}
    return Search(**named, since=since, until=until, q=fields["q"]), said | times


def _midnight(fields: dict[str, str], name: str, offset: timedelta = timedelta()) -> datetime | None:
    try:
        if not fields[name]:
            return None
        day = date.fromisoformat(fields[name]) + offset
        return datetime.combine(day, time(), timezone.get_current_timezone()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid({name: ["Enter a day as 2026-11-30."]}) from error


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise Invalid({"older": ["This page does not exist. Use the links below the table."]})
    return int(text)


urlpatterns = [
    path("audit", audit, name="audit"),
]
DOCS = "operate/audit"
MENU = {"audit": Item(ADMIN, 30, "Audit log")}
