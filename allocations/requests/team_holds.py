"""Reads who holds what in teams now, and since when no pod has used it."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from allocations.models import Allocation
from portal.tenants.models import Team
from quotas.costs import idle_holds


class TeamHold(NamedTuple):
    """``idle_since`` is None while a pod uses it."""

    id: UUID
    member: str
    idle_since: datetime | None


def of_teams(teams: Iterable[Team]) -> list[TeamHold]:
    """Return what allocations of these teams hold: what has no pod first, the longest first, then the newest; two
    queries.
    """
    rows = Allocation.objects.filter(project__team__in=teams, ended_at=None, held_since__isnull=False)
    held = list(rows.order_by("-held_since", "pk").values_list("pk", "requested_by__username", "held_since"))
    idle = idle_holds.since({id_: since for id_, _, since in held if since})
    longest_first = sorted((one for one in held if one[0] in idle), key=lambda one: idle[one[0]])
    used = (one for one in held if one[0] not in idle)
    return [TeamHold(id_, member, idle.get(id_)) for id_, member, _ in (*longest_first, *used)]
