"""Public list prices of common instances, dated and with their sources. They are data to compare with and to import;
nothing in the portal applies them.
"""

import csv
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from importlib import resources
from typing import NamedTuple

from quotas.costs.node_terms import Term
from quotas.costs.price_tables import COLUMNS, MAX_SOURCE


class PublicPrice(NamedTuple):
    """What a provider asked for an hour of an instance, as of a day."""

    provider: str
    instance: str
    gpu: str
    gpus: int
    region: str
    term: Term
    per_node_hour: Decimal
    currency: str
    as_of: date
    source: str

    @property
    def per_gpu_hour(self) -> Decimal:
        return round(self.per_node_hour / self.gpus, 4)

    @property
    def stated_source(self) -> str:
        """Return what the source of a cost says that is taken from it."""
        place = f"{self.provider} {self.instance} {self.region}".rstrip()
        return f"{place} as of {self.as_of}: {self.source}"[:MAX_SOURCE]


def listed() -> list[PublicPrice]:
    """Return all public prices, as the file has them."""
    text = resources.files("quotas.costs").joinpath("data/public_prices.csv").read_text(encoding="utf-8")
    return [
        PublicPrice(
            row["provider"],
            row["instance"],
            row["gpu"],
            int(row["gpus"]),
            row["region"],
            Term(row["term"]),
            Decimal(row["per_node_hour"]),
            row["currency"],
            date.fromisoformat(row["as_of"]),
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    ]


def as_cost(price: PublicPrice, flavor: str) -> Mapping[str, str]:
    """Return a public price as a row of the table of prices: the cost of a flavor's nodes, all of it their GPUs'."""
    return {
        **dict.fromkeys(COLUMNS, ""),
        "kind": "cost",
        "of": flavor,
        "term": price.term,
        "amount": f"{price.per_node_hour:f}",
        "per": "node",
        "split": "gpus",
        "currency": price.currency,
        "source": price.stated_source,
    }
