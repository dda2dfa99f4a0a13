"""Costs and prices as the commands print them; what has no price is not a cost of zero."""

from decimal import Decimal
from typing import Any

from portal.cli import times

NOT_PRICED, NOT_KNOWN = "not priced", "not known"


def money(amount: str | None, currency: str, *, is_priced: bool = False) -> str:
    """Return ``2.2000 EUR``; without an amount that it is not known, or, unless it `is_priced`, not priced."""
    if amount is None:
        return NOT_KNOWN if is_priced else NOT_PRICED
    return f"{amount} {currency}"


def cost(amount: str | None, currency: str, unpriced: str, until: str = "", *, is_priced: bool = False) -> str:
    """Return what `money` does, with what it leaves out if only a part has a price; ``until`` follows the amount."""
    printed = money(amount, currency, is_priced=is_priced) + until
    return printed if amount is None or not Decimal(unpriced) else f"{printed}, {left_out(unpriced)}"


def cost_to_date(row: dict[str, Any], until: str = "") -> str:
    """Return the cost of an allocation or a Job."""
    found = row["cost"]
    return cost(found["to_date"], found["currency"], found["unpriced_gpu_hours"], until)


def left_out(unpriced: str) -> str:
    """Return what an incomplete cost leaves out."""
    one = Decimal(unpriced) == 1
    return f"without {times.hours(unpriced)} GPU-hour{'' if one else 's'} that {'has' if one else 'have'} no price"
