"""Costs as run-rates: what an hour, a day or a month costs at the pace of a window. Pure."""

from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from quotas.costs.rating import MICROSECOND, MICROSECONDS_PER_HOUR, Window

HOURS_PER_MONTH = 730
"""As OpenCost has it: a year of 8,760 hours, in twelve parts."""


class Metric(StrEnum):
    """What amounts of money are: the cost of the window, or its cost for each hour, day or month."""

    CUMULATIVE = "cumulative"
    HOURLY = "hourly"
    DAILY = "daily"
    MONTHLY = "monthly"


HOURS = {Metric.HOURLY: 1, Metric.DAILY: 24, Metric.MONTHLY: HOURS_PER_MONTH}


def factor(metric: Metric, window: Window, now: datetime) -> Fraction:
    """Return by what the cost of a window is multiplied; only the time until ``now`` counts, and 0 if there is none."""
    if metric is Metric.CUMULATIVE:
        return Fraction(1)
    elapsed = (min(window.end, now) - window.start) // MICROSECOND
    return Fraction(HOURS[metric] * MICROSECONDS_PER_HOUR, elapsed) if elapsed > 0 else Fraction(0)
