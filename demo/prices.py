"""Prices of the demo, for flavors found under these names."""

from datetime import UTC, datetime
from decimal import Decimal

from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import services

CURRENCY = "EUR"
PER_GPU_HOUR = {
    "h100": Decimal("3.20"),
    "a100": Decimal("1.80"),
    "l40s": Decimal("1.10"),
    "t4": Decimal("0.40"),
}
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def price() -> int:
    """Set prices for the demo's flavors without one; return how many."""
    unpriced = Flavor.objects.filter(name__in=PER_GPU_HOUR, prices=None)
    for flavor in unpriced:
        services.set_price(SYSTEM, flavor.name, PER_GPU_HOUR[flavor.name], CURRENCY, SINCE, "demo")
    return len(unpriced)
