"""The one currency of the portal: that of its first amount. A second one is refused, since sums cannot have two."""

from portal.core.errors import Invalid
from portal.core.reading import read_rows
from quotas.costs import rates

CURRENCY = """
    coalesce((SELECT currency FROM costs_price LIMIT 1), (SELECT currency FROM costs_nodecost LIMIT 1),
             (SELECT currency FROM costs_bill LIMIT 1), (SELECT currency FROM costs_sharedcost LIMIT 1))
"""
"""The expression for it in SQL, over the tables with amounts."""


def of_portal() -> str | None:
    """Return the currency of the amounts that are known; None before the first. One query."""
    [row] = read_rows(f"SELECT {CURRENCY} AS currency")
    found: str | None = row.currency
    return found


def check(currency: str) -> str:
    """Return the currency, by default that of the portal; raise Invalid for another one and for what is none."""
    known = of_portal()
    currency = currency or known or rates.NO_PRICE_YET
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        raise Invalid({"currency": ["Give an ISO 4217 code, for example EUR."]})
    if known not in (None, currency):
        raise Invalid({"currency": [f"All prices are in {known}; amounts in two currencies cannot be added."]})
    return currency
