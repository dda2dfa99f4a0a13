"""What uses of the ledger cost, computed from rows alone by code that the portal does not share.

A use is cut at each moment at which a price begins. A piece costs the last price of its flavor that has begun by then;
before the first it has none. What is not charged costs nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from quotas.costs.ledger import Sum
from quotas.costs.models import Price
from tests.support.shares_by_moment import Piece
from tests.support.week.bill import Amount, add

Prices = Mapping[str, Mapping[datetime, Fraction]]
"""Prices of a GPU-hour by flavor and the moment at which they begin."""


def prices() -> Prices:
    """Return all prices."""
    found: dict[str, dict[datetime, Fraction]] = defaultdict(dict)
    for row in Price.objects.select_related("flavor"):
        found[row.flavor.name][row.valid_from] = Fraction(row.per_gpu_hour)
    return found


def amount(pieces: Iterable[Piece], known: Prices, start: datetime, end: datetime) -> Amount:
    """Return what the pieces are charged in ``[start, end)``; what is open is charged until the end."""
    return add(one for piece in pieces for one in _amounts(piece, known, start, end))


def of_sum(found: Sum) -> Amount:
    """Return a sum of the portal, to be compared."""
    usage = found.usage
    return Amount(usage.gpu_hours, usage.unpriced_gpu_hours, usage.priced_cost)


def _amounts(piece: Piece, known: Prices, start: datetime, end: datetime) -> Iterator[Amount]:
    row, since, until, gpus = piece
    since, until = max(since, start), min(until or end, end)
    if since >= until:
        return
    begins = known.get(row.flavor, {})
    for at, to in pairwise(sorted({since, until, *(moment for moment in begins if since < moment < until)})):
        hours = gpus * Fraction((to - at) // timedelta(microseconds=1), 3_600_000_000)
        last = max((moment for moment in begins if moment <= at), default=None)
        if row.uncharged:
            yield Amount(hours)
        elif last is None:
            yield Amount(hours, unpriced=hours)
        else:
            yield Amount(hours, cost=hours * begins[last])
