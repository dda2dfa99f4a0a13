"""What is offered, how much of it is free and what it costs: the same for every team, and kept for a moment.

Lists and pages may show it up to ``FLEET_MAX_AGE_S`` old. What decides reads it itself (``Availability`` without a
fleet): a preview, and a request. Quotas, limits and what teams have of it are never kept.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock

from allocations.capacity.offering_index import OfferingIndex
from allocations.capacity.snapshot import Capacity, CapacitySnapshot
from allocations.capacity.usage import CurrentUsage
from portal.core import clock
from quotas.catalog.models import Offering
from quotas.costs import selectors as costs


@dataclass(frozen=True)
class Fleet:
    """All that is offered with its capacity and price, as read at ``read_at`` of the monotonic clock.

    ``is_new`` says that it was read for its caller, who may use the ``usage`` that was read with it.
    """

    read_at: float
    usage: CurrentUsage
    capacities: Mapping[str, Capacity]
    prices: Mapping[str, Fraction]
    currency: str
    is_new: bool = False

    @property
    def index(self) -> OfferingIndex:
        return self.usage.index

    def capacity(self, offering: Offering) -> Capacity:
        return self.capacities[offering.key]

    def offerings(self) -> list[Offering]:
        """Return what is offered, sorted by key."""
        return self.index.offered()


_kept: list[Fleet] = []
_lock = Lock()


def fleet(max_age_s: float) -> Fleet:
    """Return the fleet as it was at most so long before this call. Who calls meanwhile waits for the same reading."""
    asked_at = time.monotonic()
    with _lock:
        if not _kept or _kept[0].read_at < asked_at - max_age_s:
            _kept[:] = [_read()]
        found = _kept[0]
    return replace(found, is_new=found.read_at >= asked_at)


def _read() -> Fleet:
    read_at = time.monotonic()
    usage = CurrentUsage()
    snapshot, offered = CapacitySnapshot(usage), usage.index.offered()
    prices, currency = costs.prices_with_currency(offered, clock.now())
    return Fleet(
        read_at=read_at,
        usage=usage,
        capacities={offering.key: snapshot.capacity(offering) for offering in offered},
        prices=prices,
        currency=currency,
    )
