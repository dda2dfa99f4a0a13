"""Sets prices, for operators."""

from datetime import datetime
from decimal import Decimal

from portal.core.errors import Invalid
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Flavor
from quotas.costs import selectors, services
from quotas.costs.models import Price


def set_price(
    user: User,
    flavor: str,
    amount: Decimal | str,
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the price of the flavor with this name, by default in the currency of all prices; as `services.set_price`.

    Raises Forbidden; Invalid for an unknown flavor.
    """
    access.require(user, "price.manage", None)
    row = Flavor.objects.filter(name=flavor).first()
    if row is None:
        raise Invalid({"flavor": [f"There is no flavor {flavor}. GET /flavors lists them."]})
    return services.set_price(user.username, row, amount, currency or selectors.currency(), valid_from, source)
