"""Write operations on prices, for operators."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.actors import Actor
from quotas.catalog.models import Flavor, Kind, Offering
from quotas.costs import amounts, currencies, subjects
from quotas.costs.models import Price
from quotas.metering import dirty_hours

ACTION = "price.manage"
MAX_SLICE_PRICE = Decimal(10) ** 6
"""A slice may be a small part of a GPU, and the price of a GPU-hour that follows has to fit too."""


def set_price(
    actor: Actor,
    flavor: str,
    amount: Decimal | str,
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the price of a GPU-hour of the flavor of this name from `valid_from` (default: now) until the next price.

    1. A price never changes past charges: it starts now or later, unless the flavor had no price at that time.
    2. The same price set twice is one row; another one at the same moment is refused.
    3. All prices have one currency, that of the first one, which is the default.

    Raises Forbidden, Invalid and Refused.
    """
    access.require(actor, ACTION, None)
    row = subjects.flavor_named(flavor)
    with transaction.atomic(), advisory_lock("prices"):
        now = clock.now()
        begins = valid_from or now
        currency = currencies.check(currency)
        per_gpu_hour = _checked_price(row, amount, begins, now)
        of_flavor = Price.objects.filter(flavor=row, offering=None)
        known = of_flavor.filter(valid_from__lte=begins).order_by("valid_from").last()
        price, created = Price.objects.get_or_create(
            flavor=row,
            offering=None,
            valid_from=begins,
            defaults={"per_gpu_hour": per_gpu_hour, "currency": currency, "source": source},
        )
        if created:
            dirty_hours.mark_all(begins, _end_of(price))
            audit(actor.username, "price.set", flavor, before=audit_values(known), after=audit_values(price))
    return price


def set_slice_price(
    actor: Actor,
    offering: str,
    amount: Decimal | str | None,
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the list price of a slice-hour of the offering of this key, by the rules of `set_price`; None is the price of
    its flavor from then on. Whoever holds a slice when a list price begins pays it from then on.
    """
    access.require(actor, ACTION, None)
    row = subjects.offering_named(offering)
    with transaction.atomic(), advisory_lock("prices"):
        now = clock.now()
        begins = valid_from or now
        currency = currencies.check(currency)
        per_slice_hour = _checked_slice_price(row, amount, begins, now)
        of_offering = Price.objects.filter(offering=row)
        known = of_offering.filter(valid_from__lte=begins).order_by("valid_from").last()
        price, created = Price.objects.get_or_create(
            flavor=row.flavor,
            offering=row,
            valid_from=begins,
            defaults={"per_slice_hour": per_slice_hour, "currency": currency, "source": source},
        )
        if created:
            dirty_hours.mark_all(begins, _end_of(price))
            audit(actor.username, "price.set", offering, before=audit_values(known), after=audit_values(price))
    return price


def _checked_price(flavor: Flavor, amount: Decimal | str, begins: datetime, now: datetime) -> Decimal:
    """Return the amount if such a price may be set; else raise Invalid or Refused, saying what may be."""
    per_gpu_hour = amounts.amount(amount, "per_gpu_hour")
    prices = Price.objects.filter(flavor=flavor, offering=None)
    known = prices.filter(valid_from=begins).first()
    if known and known.per_gpu_hour != per_gpu_hour:
        raise _taken(flavor.name, begins)
    charged = prices.filter(valid_from__lt=begins).exists()
    if not known and begins < now and charged:
        raise _is_charged()
    return per_gpu_hour


def _checked_slice_price(
    offering: Offering, amount: Decimal | str | None, begins: datetime, now: datetime
) -> Decimal | None:
    """Return the amount if such a list price may be set; else raise Invalid or Refused, saying what may be."""
    per_slice_hour = None
    if amount is not None:
        per_slice_hour = amounts.amount(amount, "per_slice_hour", largest=MAX_SLICE_PRICE)
    if offering.kind == Kind.CLAIM:
        raise Invalid({"offering": ["A claim takes what it says of a GPU, so it has no list price."]})
    of_offering = Price.objects.filter(offering=offering)
    known = of_offering.filter(valid_from=begins).first()
    if known and known.per_slice_hour != per_slice_hour:
        raise _taken(offering.key, begins)
    before = of_offering.filter(valid_from__lt=begins)
    if amount is None and not known and not before.exists():
        raise Invalid({"per_slice_hour": [f"{offering.key} has no list price that could end then."]})
    of_flavor = Price.objects.filter(flavor=offering.flavor, offering=None)
    charged = before.exists() or of_flavor.filter(valid_from__lt=now).exists()
    if not known and begins < now and charged:
        raise _is_charged()
    return per_slice_hour


def _taken(subject: str, begins: datetime) -> Refused:
    return Refused(
        "name_taken",
        f"{subject} has another price from {begins:%F %T} UTC on.",
        "Withdraw it while it has not begun, or set a later one.",
    )


def _is_charged() -> Invalid:
    return Invalid({"valid_from": ["A price cannot change what was charged. Give a time from now on."]})


def _end_of(price: Price) -> datetime | None:
    """Return when the next price of the flavor or offering begins; None if there is none."""
    same = Price.objects.filter(flavor=price.flavor, offering=price.offering, valid_from__gt=price.valid_from)
    return same.order_by("valid_from").values_list("valid_from", flat=True).first()


def audit_values(price: Price | None) -> dict[str, str | None] | None:
    """Return a price as the audit log has it."""
    if price is None:
        return None
    field = "per_gpu_hour" if price.offering_id is None else "per_slice_hour"
    amount = getattr(price, field)
    return {
        field: None if amount is None else f"{amount.normalize():f}",
        "currency": price.currency,
        "valid_from": price.valid_from.isoformat(),
        "source": price.source,
    }
