"""Saved views as links, and with whom a view may be shared."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F
from django.urls import reverse

from portal.tenants import access
from portal.tenants.models import Team, User
from quotas.costs import saved_views

MAX_SHOWN = saved_views.MAX_VIEWS + 50
"""All views that a person may have, and some of teams."""


@dataclass(frozen=True)
class SavedLink:
    """A saved view; ``whose`` is empty for the reader's own."""

    id: int
    name: str
    url: str
    whose: str
    may_delete: bool


def saved_links(user: User) -> tuple[list[SavedLink], bool]:
    """Return the views that the reader sees, own ones first, and whether there are more than are shown."""
    rows = list(saved_views.visible(user).order_by(F("team__slug").asc(nulls_first=True), "name")[: MAX_SHOWN + 1])
    permissions = access.permissions_of(user)
    found = [
        SavedLink(
            id=row.pk,
            name=row.name,
            url=f"{reverse('costs')}?{row.query}",
            whose="" if row.team is None else f"team {row.team.slug}",
            may_delete=row.team is None or permissions.can("view.delete", row.team.pk, row.owner_id),
        )
        for row in rows[:MAX_SHOWN]
    ]
    return found, len(rows) > MAX_SHOWN


def teams_to_share_with(user: User) -> Sequence[Team]:
    """Return the reader's teams with which the reader may share views."""
    permissions = access.permissions_of(user)
    teams = Team.objects.filter(memberships__user=user).order_by("slug")
    return [team for team in teams if permissions.can("view.share", team.pk)]
