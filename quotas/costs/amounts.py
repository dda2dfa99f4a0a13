"""Reads amounts that people write. Pure."""

from decimal import Decimal, InvalidOperation

from portal.core.errors import Invalid

DECIMALS = 10
MAX_AMOUNT = Decimal(10) ** 9


def amount(text: Decimal | str, field: str, *, largest: Decimal = MAX_AMOUNT, places: int = DECIMALS) -> Decimal:
    """Return an amount from 0 on; raise Invalid, naming the field, for what is none."""
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise Invalid({field: ["Give a decimal number, for example 3.20."]}) from error
    if not value.is_finite() or not 0 <= value < largest or value != round(value, places):
        raise Invalid({field: [f"Give a number from 0 to {largest:f} with at most {places} decimals."]})
    return value
