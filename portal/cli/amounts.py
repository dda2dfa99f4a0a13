"""Costs and prices as the commands print them; what has no price is not a cost of zero."""

from decimal import Decimal
from typing import Any

from portal.cli import times

NOT_PRICED = "not priced"


def money(amount: str | None, currency: str) -> str:
    """Return ``2.2000 EUR``, or that it is not priced."""
    return NOT_PRICED if amount is None else f"{amount} {currency}"


def cost(amount: str | None, currency: str, unpriced: str, until: str = "") -> str:
    """Return ``2.2000 EUR``, with what it leaves out if only a part has a price; ``until`` follows the amount."""
    printed = money(amount, currency) + until
    return printed if amount is None or not Decimal(unpriced) else f"{printed}, {left_out(unpriced)}"


def cost_to_date(row: dict[str, Any], until: str = "") -> str:
    """Return the cost of an allocation or a Job."""
    found = row["cost"]
    return cost(found["to_date"], found["currency"], found["unpriced_gpu_hours"], until)


def left_out(unpriced: str) -> str:
    """Return what an incomplete cost leaves out."""
    one = Decimal(unpriced) == 1
    return f"without {times.hours(unpriced)} GPU-hour{'' if one else 's'} that {'has' if one else 'have'} no price"
