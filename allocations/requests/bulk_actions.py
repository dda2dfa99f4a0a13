"""Releases or extends several allocations with one call.

Each in a transaction of its own: what one may not change, or what fails, keeps no other from being changed. At most
MAX_AT_ONCE are changed by a call. A repeated release goes on where the first one stopped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from django.db.models import QuerySet

from allocations.models import Allocation
from allocations.requests import selectors, services
from portal.core.errors import Problem
from portal.tenants import access
from portal.tenants.models import User

MAX_AT_ONCE = 100


@dataclass(frozen=True)
class Release:
    """What became of one allocation. ``is_new``: this call released it, or would; else it was ending before."""

    id: str
    row: Allocation | None
    is_new: bool = False
    problem: Problem | None = None


def release_named(user: User, ids: Iterable[str], reason: str, *, is_dry_run: bool) -> list[Release]:
    """Release the allocations with these ids. What the person cannot see has the problem of what does not exist."""
    return [_release(user, id_, reason, is_dry_run=is_dry_run) for id_ in dict.fromkeys(ids)]


def extend_named(user: User, ids: Iterable[str], hours: Decimal) -> list[tuple[str, Problem | None]]:
    """Extend the allocations with these ids by so many hours; return each by its name or id, with why it was not."""
    return [_extend(user, id_, hours) for id_ in dict.fromkeys(ids)]


def release_matching(
    user: User, rows: QuerySet[Allocation], reason: str, *, is_dry_run: bool
) -> tuple[Sequence[Release], bool]:
    """Release those of the rows that have not been released and that the person may release, oldest first.

    Returns also whether there are more than MAX_AT_ONCE.
    """
    may = access.permissions_of(user)
    live = rows.filter(desired=Allocation.Desired.HELD).order_by("created_at", "id").iterator(MAX_AT_ONCE)
    releasable = (row for row in live if may.can("allocation.release", row.project.team_id, row.requested_by_id))
    found = list(islice(releasable, MAX_AT_ONCE + 1))
    ids = [str(row.pk) for row in found[:MAX_AT_ONCE]]
    return release_named(user, ids, reason, is_dry_run=is_dry_run), len(found) > MAX_AT_ONCE


def has_effect(user: User, rows: QuerySet[Allocation]) -> bool:
    """Return whether one of the rows has not been released, and the person may release it."""
    may, live = access.permissions_of(user), rows.filter(desired=Allocation.Desired.HELD).order_by()
    owners = live.values_list("project__team_id", "requested_by_id").distinct()
    return any(may.can("allocation.release", team, owner) for team, owner in owners)


def _release(user: User, id_: str, reason: str, *, is_dry_run: bool) -> Release:
    row = None
    try:
        row = selectors.get(user, id_)
        access.require(user, "allocation.release", row.project.team, row.requested_by)
        is_new = row.desired == Allocation.Desired.HELD
        if not is_dry_run:
            row = services.release(user, row, reason)
    except Problem as problem:
        return Release(id_, row, problem=problem)
    return Release(str(row.pk), row, is_new)


def _extend(user: User, id_: str, hours: Decimal) -> tuple[str, Problem | None]:
    name = id_
    try:
        row = selectors.get(user, id_)
        name = row.name
        services.extend(user, row, hours)
    except Problem as problem:
        return name, problem
    return name, None
