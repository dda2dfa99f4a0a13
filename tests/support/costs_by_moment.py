"""What uses of the ledger cost, computed from rows alone by code that the portal does not share.

A use is cut at each moment at which a price begins. A piece costs the last list price of its offering that has begun by
then, divided by what a slice takes of a GPU; if there is none, or it has ended, the last price of its flavor. Before
the first it has none. What is not charged costs nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

from quotas.costs.ledger import Sum
from quotas.costs.models import Price
from quotas.metering.models import UsageInterval
from tests.support.shares_by_moment import Piece
from tests.support.week.bill import Amount, add

Prices = Mapping[str, Mapping[datetime, Decimal | None]]
"""Prices by the moment at which they begin: of a GPU-hour by flavor, and of a slice-hour by key of an offering."""


def prices() -> Prices:
    """Return all prices."""
    found: dict[str, dict[datetime, Decimal | None]] = defaultdict(dict)
    for row in Price.objects.select_related("flavor", "offering"):
        if row.offering is None:
            found[row.flavor.name][row.valid_from] = row.per_gpu_hour
        else:
            found[row.offering.key][row.valid_from] = row.per_slice_hour
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
    begins = [at for name in (row.flavor, row.offering) for at in known.get(name, {}) if since < at < until]
    for at, to in pairwise(sorted({since, until, *begins})):
        hours = gpus * Fraction((to - at) // timedelta(microseconds=1), 3_600_000_000)
        price = _per_gpu_hour(row, known, at)
        if row.uncharged:
            yield Amount(hours)
        elif price is None:
            yield Amount(hours, unpriced=hours)
        else:
            yield Amount(hours, cost=hours * Fraction(price))


def _per_gpu_hour(row: UsageInterval, known: Prices, at: datetime) -> Decimal | None:
    per_slice = _last(known.get(row.offering, {}), at)
    if per_slice is None:
        return _last(known.get(row.flavor, {}), at)
    with localcontext(prec=100):
        exact = per_slice * row.gpu_share_denominator / row.gpu_share_numerator
        return exact.quantize(Decimal("1e-10"), ROUND_HALF_UP)


def _last(prices: Mapping[datetime, Decimal | None], at: datetime) -> Decimal | None:
    begun = [moment for moment in prices if moment <= at]
    return prices[max(begun)] if begun else None
