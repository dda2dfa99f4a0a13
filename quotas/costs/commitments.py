"""Reads what running holds are committed to, and rates it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from uuid import UUID

from quotas.costs import columns, rating
from quotas.costs.filters import Filter
from quotas.costs.forecast import DayPart
from quotas.costs.rates import PriceList
from quotas.costs.rating import RatedUsage, Usage, Window
from quotas.metering import charged_intervals
from quotas.metering.models import UsageInterval

_RUNNING = 'SELECT total.* FROM metering_usageinterval AS total WHERE total."end" IS NULL AND '


def running(where: Filter) -> list[UsageInterval]:
    """Return the uses that have no end yet and that the filter keeps; one query."""
    condition, parameters = columns.condition(where)
    return list(UsageInterval.objects.raw(_RUNNING + condition, parameters))


def rated(
    rows: Sequence[UsageInterval], ends: Mapping[UUID, datetime], parts: Sequence[DayPart], prices: PriceList
) -> list[RatedUsage]:
    """Return for each part what the running uses are committed to in it, until the end of their holder, or of the last
    part if ``ends`` has none. One query if any has a device: it is charged what it is beside the other uses of its GPU,
    as if those went on.
    """
    if not parts:
        return []
    until = parts[-1].end
    amounts: dict[tuple[str, datetime, datetime, bool, str, Fraction], Fraction] = defaultdict(Fraction)
    for row, start, end, gpus in charged_intervals.until(rows, until):
        last = min(end or until, ends.get(row.holder_id, until), until)
        since = max(start, parts[0].start)
        if since < last:
            share = Fraction(row.gpu_share_numerator, row.gpu_share_denominator)
            amounts[row.flavor, since, last, not row.uncharged, row.offering, share] += gpus
    usages = [
        Usage(flavor, gpus, since, last, is_charged, offering, share)
        for (flavor, since, last, is_charged, offering, share), gpus in amounts.items()
    ]
    windows = (Window(part.start, part.end) for part in parts)
    return [rating.rated_usage(usages, prices.rates, window, until, prices.lists) for window in windows]
