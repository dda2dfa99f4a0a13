"""The prices that change in a simulated history."""

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from demo.simulated_history.model import FlavorPrice, PriceChange, World
from quotas.metering.hours import day_of, hour_of

DISCOUNT = Decimal("0.90")
CENT = Decimal("0.01")


def changes(world: World) -> list[PriceChange]:
    """Return a discount on the most expensive flavor, and its end: the present price stays as it is."""
    if not world.prices:
        return []
    flavor = max(world.prices, key=lambda name: (world.prices[name].per_gpu_hour, name))
    now, length = world.prices[flavor], world.until - world.start
    first, last = (_midnight_or_hour(world.start + length * part, world) for part in (0.45, 0.75))
    lower = FlavorPrice((now.per_gpu_hour * DISCOUNT).quantize(CENT, ROUND_HALF_UP), now.currency)
    return [PriceChange(flavor, first, lower), PriceChange(flavor, last, now)]


def _midnight_or_hour(moment: datetime, world: World) -> datetime:
    """Return the midnight before; in a history of two days or less the whole hour before."""
    return day_of(moment) if world.until - world.start > timedelta(days=2) else hour_of(moment)
