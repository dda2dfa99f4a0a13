"""What each interval of the ledger is charged, computed from the rows alone by code that the portal does not share."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from quotas.metering.models import UsageInterval

Piece = tuple[UsageInterval, datetime, datetime | None, Fraction]


def pieces(now: datetime) -> Iterator[Piece]:
    """Yield each interval of the ledger with what it is charged: of a GPU, between any two of its uses' bounds."""
    gpus: dict[str, list[UsageInterval]] = defaultdict(list)
    for row in UsageInterval.objects.all():
        slot = row.slot.split("/")
        if row.node and slot[1] == row.node:
            gpus[f"{slot[0]} {row.flavor} {row.node} {slot[2].split('-mig-')[0]}"].append(row)
        else:
            yield row, row.start, row.end, _weight(row)
    for rows in gpus.values():
        bounds = sorted({bound for row in rows for bound in (row.start, row.end or now, now) if bound <= now})
        for index, end in enumerate(bounds[1:]):
            yield from _between(sorted(rows, key=lambda row: (row.start, row.slot)), bounds[index], end)


def _between(rows: list[UsageInterval], start: datetime, end: datetime) -> Iterator[Piece]:
    charged = Fraction(0)
    for row in rows:
        if row.start <= start and (row.end is None or row.end > start):
            before, charged = charged, min(Fraction(1), charged + _weight(row))
            yield row, start, end, charged - before


def _weight(row: UsageInterval) -> Fraction:
    return Fraction(row.count * row.gpu_share_numerator, row.gpu_share_denominator)
