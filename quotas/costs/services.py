"""Write operations on prices. `quotas.costs.pricing` checks permission."""

from datetime import datetime
from decimal import Decimal, InvalidOperation

from django.db import transaction

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from quotas.catalog.models import Flavor
from quotas.costs.models import Price
from quotas.metering import dirty_hours

DECIMALS = 10
MAX_AMOUNT = Decimal(10) ** 9


def set_price(
    actor: str,
    flavor: Flavor,
    amount: Decimal | str,
    currency: str,
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the price of a GPU-hour of `flavor` from `valid_from` (default: now) until the next price.

    1. A price never changes past charges: it starts now or later, unless the flavor had no price at that time.
    2. The same price set twice is one row; another one at the same moment is refused.
    3. All prices have one currency, that of the first one.
    """
    with transaction.atomic(), advisory_lock("prices"):
        now = clock.now()
        begins = valid_from or now
        per_gpu_hour = check_price(flavor, amount, currency, begins, now)
        known = Price.objects.filter(flavor=flavor, valid_from__lte=begins).order_by("valid_from").last()
        price, created = Price.objects.get_or_create(
            flavor=flavor,
            valid_from=begins,
            defaults={"per_gpu_hour": per_gpu_hour, "currency": currency, "source": source},
        )
        if created:
            dirty_hours.mark_all(begins, _end_of(price))
            audit(actor, "price.set", flavor.name, before=_audit_values(known), after=_audit_values(price))
    return price


def _end_of(price: Price) -> datetime | None:
    """Return when the next price of the flavor begins; None if there is none."""
    later = Price.objects.filter(flavor=price.flavor, valid_from__gt=price.valid_from).order_by("valid_from")
    return later.values_list("valid_from", flat=True).first()


def _audit_values(price: Price | None) -> dict[str, str] | None:
    """Return a price as the audit log has it."""
    if price is None:
        return None
    return {
        "per_gpu_hour": f"{price.per_gpu_hour.normalize():f}",
        "currency": price.currency,
        "valid_from": price.valid_from.isoformat(),
        "source": price.source,
    }


def check_price(
    flavor: Flavor, amount: Decimal | str, currency: str, begins: datetime, now: datetime | None = None
) -> Decimal:
    """Return the amount if such a price may be set; else raise Invalid or Refused, saying what may be."""
    per_gpu_hour = _amount(amount)
    _check_currency(currency)
    known = Price.objects.filter(flavor=flavor, valid_from=begins).first()
    if known and known.per_gpu_hour != per_gpu_hour:
        raise Refused(
            "name_taken",
            f"{flavor.name} has another price from {begins:%F %T} UTC on.",
            "Prices never change; set a later one.",
        )
    charged = Price.objects.filter(flavor=flavor, valid_from__lt=begins).exists()
    if not known and begins < (now or clock.now()) and charged:
        raise Invalid({"valid_from": ["A price cannot change what was charged. Give a time from now on."]})
    return per_gpu_hour


def _amount(amount: Decimal | str) -> Decimal:
    try:
        value = Decimal(amount)
    except InvalidOperation as error:
        raise Invalid({"per_gpu_hour": ["Give a decimal number, for example 3.20."]}) from error
    if not value.is_finite() or not 0 <= value < MAX_AMOUNT or value != round(value, DECIMALS):
        raise Invalid({"per_gpu_hour": [f"Give a number from 0 to {MAX_AMOUNT:f} with at most {DECIMALS} decimals."]})
    return value


def _check_currency(currency: str) -> None:
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        raise Invalid({"currency": ["Give an ISO 4217 code, for example EUR."]})
    other = Price.objects.exclude(currency=currency).values_list("currency", flat=True).first()
    if other:
        raise Invalid({"currency": [f"All prices are in {other}; amounts in two currencies cannot be added."]})
