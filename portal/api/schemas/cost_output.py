"""Cost and prices in REST answers: decimal strings, and null for what has no price."""

from fractions import Fraction
from typing import Any

from portal.core import money
from quotas.costs.selectors import Charge

COST_HELP = "Decimal, without the unpriced GPU-hours; null if those are all there are."
UNPRICED_HELP = "Decimal: used while no price was in force; 0 if none."


def cost_to_date(charge: Charge, currency: str) -> dict[str, Any]:
    return {
        "to_date": amount(charge.cost),
        "unpriced_gpu_hours": money.hours_text(charge.unpriced),
        "currency": currency,
    }


def amount(amount: Fraction | None) -> str | None:
    return None if amount is None else money.text(amount)
