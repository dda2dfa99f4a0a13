"""Reads what cards show of allocations."""

from collections.abc import Sequence

from allocations.models import Allocation
from allocations.queues import queue
from allocations.requests import details
from frontend.presenters.allocations import Card, cards
from portal.core import clock
from portal.core.reading import Batch
from portal.tenants import access
from portal.tenants.access import Permissions
from portal.tenants.models import User


def cards_of(user: User, rows: Sequence[Allocation], batch: Batch | None = None) -> list[Card]:
    """Return the rows as cards for the person; one query with the rest of the ``batch``, two more for devices."""
    batch = batch or Batch()
    roles, places = batch.add(access.roles_in_teams(user)), queue.read_positions(rows, batch)
    found = details.read(rows, batch)
    return cards(rows, found.by_id(), places(), Permissions(user, dict(roles())), clock.now())
