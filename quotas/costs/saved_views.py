"""Saved views of costs: which a person sees, and writing them."""

from django.core.exceptions import TooManyFieldsSent
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.models import Team, User
from quotas.costs import columns, cost_parameters
from quotas.costs.models import SavedView

PARAMETERS = {
    *("window", "timezone", "week_start", "aggregate", "filter", "idle", "idle_by", "idle_split", "cost"),
    *("accumulate", "sort"),
}
"""Those of `/costs`, and the order of the page's rows."""
MAX_QUERY, MAX_NAME = 8000, 80
MAX_VIEWS = 100
"""Of one person."""


def visible(user: User) -> QuerySet[SavedView]:
    """Return the views of `user`, and those of the teams whose things `user` may read."""
    rows = SavedView.objects.select_related("owner", "team")
    return rows.filter(Q(team=None, owner=user) | Q(team__in=access.visible_teams(user)))


def get(user: User, id_: int) -> SavedView:
    """Return a view that `user` sees. Raises NotVisible."""
    row = visible(user).filter(pk=id_).first()
    if row is None:
        raise NotVisible("This saved view", hint="You see your own saved views, and those of your teams.")
    return row


def save(user: User, name: str, query: str, team: Team | None = None) -> SavedView:
    """Save a view for `user`, or for the team if one is given.

    Raises Invalid for a query that `/costs` does not answer, and above `MAX_VIEWS`; Refused for a name that is taken;
    NotVisible and Forbidden for a team in which `user` may not share views.
    """
    if team is not None:
        access.require(user, "view.share", team)
    name = name.strip()
    _check(name, query)
    with transaction.atomic(), advisory_lock("saved-views"):
        own = SavedView.objects.filter(owner=user)
        if own.count() >= MAX_VIEWS:
            raise Invalid({"name": [f"You have {MAX_VIEWS} saved views, which is the limit. Delete one first."]})
        others = own.filter(team=None) if team is None else SavedView.objects.filter(team=team)
        if others.filter(name=name).exists():
            whose = "You have" if team is None else f"Team {team.slug} has"
            raise Refused(
                "name_taken", f"{whose} a saved view {name} already.", "Use another name, or delete it first."
            )
        row = SavedView.objects.create(name=name, query=query, owner=user, team=team, created_at=clock.now())
        audit(user.username, "view.save", name, team=team.slug if team else "", after={"query": query})
    return row


def delete(user: User, row: SavedView) -> None:
    """Delete a view: one's own, or as a lead one of the team. Raises Forbidden."""
    if row.team is not None:
        access.require(user, "view.delete", row.team, row.owner)
    with transaction.atomic():
        row.delete()
        audit(
            user.username, "view.delete", row.name, team=row.team.slug if row.team else "", before={"query": row.query}
        )


def _check(name: str, query: str) -> None:
    if not name or len(name) > MAX_NAME or "\x00" in name:
        raise Invalid({"name": [f"Give a name of 1 to {MAX_NAME} characters."]})
    if len(query) > MAX_QUERY or "\x00" in query:
        raise Invalid({"query": [f"Give a query of at most {MAX_QUERY} characters."]})
    try:
        parameters = QueryDict(query)
    except TooManyFieldsSent as error:
        raise Invalid({"query": ["It has too many parameters."]}) from error
    if unknown := sorted(parameters.keys() - PARAMETERS):
        raise Invalid({"query": [f"{', '.join(unknown)} cannot be saved. Use {', '.join(sorted(PARAMETERS))}."]})
    try:
        columns.grouped_by(cost_parameters.read(parameters, clock.now()).keys)
    except Invalid as problem:
        raise Invalid({"query": [problem.detail]}) from problem
