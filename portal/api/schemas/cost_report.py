"""Costs in REST answers: rows, the outages among them, and how they are compared."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from rest_framework import serializers

from portal.api.http.pagination import Page
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount
from portal.api.schemas.decimal_text import DecimalText
from portal.core import money
from quotas.costs.cost_rows import CostRow, Costs
from quotas.costs.outages import OutageShare
from quotas.costs.rating import Window

NOT_HELD_HELP = (
    'For platform staff, by cluster, flavor and node; "0" for others. null without a price, if the window begins '
    "before `capacity_recorded_since`, or until the time is rolled up."
)
MONTH_HELP = "null while the costs of the month are not known."
IDLE_COST_HELP = f"{NOT_HELD_HELP} With idle=owner also for members: what is idle of their own teams' quota."
BILLED_HELP = "For platform staff: the part of the cost of capacity that bills cover, 0 to 1. null: none."
AMOUNTS = (
    *("gpu_hours", "unpriced_gpu_hours", "cost", "idle_cost", "stranded_cost", "unavailable_cost", "unmanaged_cost"),
    *("variance", "unpriced_idle_gpu_hours", "price_variance", "node_rest", "idle_adjustment", "idle_shared_cost"),
    *("adjustment", "shared_cost", "total", "previous_gpu_hours", "previous_total", "change"),
)
"""The columns of an export that are decimal numbers."""
CHANGE_HELP = (
    "Of the total since the window before; null if either has no price, if the window before was not recorded from its "
    "start on, and without compare=previous."
)
PREVIOUS_HELP = (
    "With compare=previous: the same in the window before; zero if there was no such row. Costs are null if that "
    "window was not recorded from its start on."
)


class WindowOut(serializers.Serializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class PastOut(serializers.Serializer):
    gpu_hours = DecimalText()
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    cost = DecimalText(allow_null=True, help_text=COST_HELP)
    total = DecimalText(allow_null=True, help_text=COST_HELP)


class CostRowOut(serializers.Serializer):
    name = serializers.CharField(help_text="Values of the keys, joined by /.")
    properties = serializers.DictField(child=serializers.CharField(), help_text="Values by key.")
    window = WindowOut()
    gpu_hours = DecimalText()
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    cost = DecimalText(allow_null=True, help_text=COST_HELP)
    idle_cost = DecimalText(allow_null=True, help_text=IDLE_COST_HELP)
    stranded_cost = DecimalText(allow_null=True, help_text=NOT_HELD_HELP)
    unavailable_cost = DecimalText(allow_null=True, help_text=NOT_HELD_HELP)
    unmanaged_cost = DecimalText(allow_null=True, help_text=NOT_HELD_HELP)
    variance = DecimalText(allow_null=True, help_text=f"{NOT_HELD_HELP} Negative if more is charged than is.")
    unpriced_idle_gpu_hours = DecimalText(
        allow_null=True, help_text="Of these columns, without a price: the costs above are without them."
    )
    price_variance = DecimalText(
        allow_null=True, help_text=f"{NOT_HELD_HELP} What GPUs cost the platform less their price: negative if below."
    )
    node_rest = DecimalText(allow_null=True, help_text=f"{NOT_HELD_HELP} What nodes cost besides their GPUs.")
    idle_adjustment = DecimalText(allow_null=True, help_text=f"{NOT_HELD_HELP} Of bills.")
    idle_shared_cost = DecimalText(allow_null=True, help_text=f"{NOT_HELD_HELP} Of fixed costs.")
    adjustment = DecimalText(allow_null=True, help_text=f"The part of bills less what was rated. {MONTH_HELP}")
    shared_cost = DecimalText(allow_null=True, help_text=f"The part of fixed costs. {MONTH_HELP}")
    total = DecimalText(allow_null=True, help_text=f"Of cost, adjustment and shared_cost. {COST_HELP}")
    currency = serializers.CharField()
    previous = PastOut(allow_null=True, help_text=PREVIOUS_HELP)
    change = DecimalText(allow_null=True, help_text=CHANGE_HELP)


class OutageOut(serializers.Serializer):
    cluster = serializers.CharField()
    window = WindowOut()


class OutagesOut(serializers.Serializer):
    results = OutageOut(many=True)
    gpu_hours = DecimalText(help_text="Charged for these times.")
    cost = DecimalText(allow_null=True, help_text=COST_HELP)


class CapacitySinceOut(serializers.Serializer):
    cluster = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True, help_text="null: not recorded yet.")


class CostPage(Page):
    results = CostRowOut(many=True)
    currency = serializers.CharField()
    gpu_hours = DecimalText(help_text="The sum over the rows of all pages.")
    unpriced_gpu_hours = DecimalText(help_text="The sum over the rows: their costs are without these.")
    total = DecimalText(
        allow_null=True, help_text="The sum over the rows of all pages; of a run-rate, that of the window."
    )
    window = WindowOut()
    billed_share = DecimalText(allow_null=True, help_text=BILLED_HELP)
    previous_window = WindowOut(allow_null=True, help_text="The window that it is compared with.")
    previous_total = DecimalText(allow_null=True)
    outages = OutagesOut(help_text="Times in which nobody recorded a cluster; what is charged for them is in the rows.")
    capacity_recorded_since = CapacitySinceOut(
        many=True, help_text="For platform staff. Before it only what was held is known. Empty for others."
    )
    simulated_until = serializers.DateTimeField(
        allow_null=True, help_text="In a demo, until when what the window has is simulated; null if nothing of it is."
    )


def body(found: Costs, outages: OutageShare, simulated_until: datetime | None) -> dict[str, Any]:
    """Return the members of an answer beside its page."""
    return {
        "currency": found.currency,
        "gpu_hours": found.gpu_hours,
        "unpriced_gpu_hours": found.unpriced_gpu_hours,
        "total": found.total,
        "window": span(found.window),
        "billed_share": found.billed_share,
        "previous_window": span(found.previous.window) if found.previous else None,
        "previous_total": found.previous.total if found.previous else None,
        "outages": _outages(outages),
        "capacity_recorded_since": [
            {"cluster": cluster, "since": since} for cluster, since in sorted(found.capacity_recorded_since.items())
        ],
        "simulated_until": simulated_until,
    }


def rows(found: Sequence[CostRow]) -> list[dict[str, Any]]:
    """Return rows in an answer; those of a step, which adjoin, share their window."""
    steps = ((span(window), of_step) for window, of_step in groupby(found, key=lambda row: row.window))
    return [
        {**vars(row), "window": window, "previous": vars(row.previous) if row.previous else None}
        for window, of_step in steps
        for row in of_step
    ]


def amounts(found: CostRow) -> list[str]:
    """Return the amounts of a row in the order of AMOUNTS; what is not known is empty."""
    past = found.previous
    before = [past.gpu_hours, past.total] if past else ["", ""]
    values = [*(getattr(found, name) for name in AMOUNTS[:-3]), *before, found.change]
    return [value or "" for value in values]


def span(window: Window) -> dict[str, str]:
    """Return a window in an answer."""
    return {"start": _text(window.start), "end": _text(window.end)}


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _outages(found: OutageShare) -> dict[str, Any]:
    return {
        "results": [{"cluster": one.cluster, "window": span(one.window)} for one in found.outages],
        "gpu_hours": money.hours_text(found.charged.gpu_hours),
        "cost": amount(found.charged.cost),
    }
