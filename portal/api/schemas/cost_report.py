"""Costs in REST answers: what is beside their rows, and the columns of their export."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from allocations.domain.documents import fields_of
from portal.api.http.pagination import page_schema
from portal.api.schemas.outputs import output_of, written
from portal.core.money import DecimalString, HoursOrZero, Money
from quotas.costs.cost_rows import COST_HELP, CostRow, Past
from quotas.costs.outages import Outage
from quotas.costs.rating import Window

BILLED_HELP = "For platform staff: the part of the cost of capacity that bills cover, 0 to 1. null: none."
AMOUNTS = tuple(each.name for each in fields_of(CostRow) if written(each) and each.name != "change")
COLUMNS = (*AMOUNTS, "previous_gpu_hours", "previous_total", "change")
"""The columns of an export that are decimal numbers."""
NOTHING_BEFORE = Past("", "", "", "")


@dataclass(frozen=True)
class OutagesOut:
    results: Annotated[Sequence[Outage], attrgetter("outages")]
    gpu_hours: Annotated[HoursOrZero, "Charged for these times.", attrgetter("charged.gpu_hours")]
    cost: Annotated[Money | None, COST_HELP, attrgetter("charged.cost")]


@dataclass(frozen=True)
class CapacitySinceOut:
    cluster: str
    since: Annotated[datetime | None, "null: not recorded yet."]


@dataclass(frozen=True)
class CostSums:
    """What an answer says of all its rows; read from ``Costs``."""

    currency: str
    gpu_hours: Annotated[DecimalString, "The sum over the rows of all pages."]
    unpriced_gpu_hours: Annotated[DecimalString, "The sum over the rows: their costs are without these."]
    total: Annotated[DecimalString | None, "The sum over the rows of all pages; of a run-rate, that of the window."]
    window: Window
    billed_share: Annotated[DecimalString | None, BILLED_HELP]
    previous_window: Annotated[
        Window | None,
        "The window that it is compared with.",
        lambda found: found.previous and found.previous.window,
    ]
    previous_total: Annotated[DecimalString | None, lambda found: found.previous and found.previous.total]
    capacity_recorded_since: Annotated[
        Sequence[CapacitySinceOut],
        "For platform staff. Before it only what was held is known. Empty for others.",
        lambda found: [CapacitySinceOut(*each) for each in sorted(found.capacity_recorded_since.items())],
    ]


@dataclass(frozen=True)
class CostTimes:
    """What an answer says of times of its window."""

    outages: Annotated[OutagesOut, "Times in which nobody recorded a cluster; what is charged for them is in the rows."]
    simulated_until: Annotated[
        datetime | None, "In a demo, until when what the window has is simulated; null if nothing of it is."
    ]


CostPage = page_schema(output_of(CostRow), output_of(CostSums), output_of(CostTimes), name="CostPage")


def amounts(found: CostRow) -> list[str]:
    """Return the amounts of a row in the order of COLUMNS; what is not known is empty."""
    past = found.previous or NOTHING_BEFORE
    values = (*(getattr(found, name) for name in AMOUNTS), past.gpu_hours, past.total, found.change)
    return [value or "" for value in values]
