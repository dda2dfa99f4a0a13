"""Rows of costs, in OpenCost's shape; amounts are decimal strings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from portal.core.money import DecimalString
from quotas.costs.fleet_costs import Column
from quotas.costs.price_variance import CostLine
from quotas.costs.rating import Window
from quotas.metering.parts import Category

COST_HELP = "Decimal, without the unpriced GPU-hours; null if those are all there are."
UNPRICED_HELP = "Decimal: used while no price was in force; 0 if none."
NOT_HELD_HELP = (
    'For platform staff, by cluster, flavor and node; "0" for others. null without a price, if the window begins '
    "before `capacity_recorded_since`, or until the time is rolled up."
)
IDLE_COST_HELP = f"{NOT_HELD_HELP} With idle=owner also for members: what is idle of their own teams' quota."
MONTH_HELP = "null while the costs of the month are not known."
PREVIOUS_HELP = (
    "With compare=previous: the same in the window before; zero if there was no such row. Costs are null if that "
    "window was not recorded from its start on."
)
CHANGE_HELP = (
    "Of the total since the window before; null if either has no price, if the window before was not recorded from its "
    "start on, and without compare=previous."
)
NotHeld = Annotated[DecimalString | None, NOT_HELD_HELP]


@dataclass(frozen=True)
class Past:
    """What a row was in the window before. Zero if it was not there. Cost and total are None if it is not priced, or if
    that window was not recorded from its start on.
    """

    gpu_hours: DecimalString = "0.000000"
    unpriced_gpu_hours: Annotated[DecimalString, UNPRICED_HELP] = "0"
    cost: Annotated[DecimalString | None, COST_HELP] = "0.0000"
    total: Annotated[DecimalString | None, COST_HELP] = "0.0000"


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One group in one window.

    `total` is what is charged: the sum of `cost`, `adjustment` and `shared_cost`, the parts of bills and fixed costs.
    `cost` and it are without the unpriced GPU-hours, and None if those are all there are; `total` also if a part of a
    bill or fixed cost is not known. The others say what nobody is charged for, and are no part of it, whatever rows
    they are in (`idle_views`). For who does not see the whole fleet they are "0", but for what is idle of their own
    teams' quota. None is without a price, if the window begins before capacity is recorded, or if too much is not
    rolled up yet. `unpriced_idle_gpu_hours` are those of them without a price.

    `properties` are the values of the keys. `previous` and `change`, the difference of the totals, are None unless the
    row is compared with the window before.
    """

    name: Annotated[str, "Values of the keys, joined by /."]
    properties: Annotated[Mapping[str, str], "Values by key."] = field(default_factory=dict)
    window: Window
    gpu_hours: DecimalString
    unpriced_gpu_hours: Annotated[DecimalString, UNPRICED_HELP]
    cost: Annotated[DecimalString | None, COST_HELP]
    idle_cost: Annotated[DecimalString | None, IDLE_COST_HELP] = "0"
    stranded_cost: NotHeld = "0"
    unavailable_cost: NotHeld = "0"
    unmanaged_cost: NotHeld = "0"
    variance: Annotated[DecimalString | None, f"{NOT_HELD_HELP} Negative if more is charged than is."] = "0"
    unpriced_idle_gpu_hours: Annotated[
        DecimalString | None, "Of these columns, without a price: the costs above are without them."
    ] = "0"
    price_variance: Annotated[
        DecimalString | None, f"{NOT_HELD_HELP} What GPUs cost the platform less their price: negative if below."
    ] = "0"
    node_rest: Annotated[DecimalString | None, f"{NOT_HELD_HELP} What nodes cost besides their GPUs."] = "0"
    idle_adjustment: Annotated[DecimalString | None, f"{NOT_HELD_HELP} Of bills."] = "0"
    idle_shared_cost: Annotated[DecimalString | None, f"{NOT_HELD_HELP} Of fixed costs."] = "0"
    adjustment: Annotated[DecimalString | None, f"The part of bills less what was rated. {MONTH_HELP}"] = "0"
    shared_cost: Annotated[DecimalString | None, f"The part of fixed costs. {MONTH_HELP}"] = "0"
    total: Annotated[DecimalString | None, f"Of cost, adjustment and shared_cost. {COST_HELP}"]
    currency: str
    previous: Annotated[Past | None, PREVIOUS_HELP] = None
    change: Annotated[DecimalString | None, CHANGE_HELP] = None


COLUMNS: Mapping[Column, str] = {
    Category.IDLE: "idle_cost",
    Category.STRANDED: "stranded_cost",
    Category.UNAVAILABLE: "unavailable_cost",
    Category.UNMANAGED: "unmanaged_cost",
    Category.VARIANCE: "variance",
    CostLine.PRICE_VARIANCE: "price_variance",
    CostLine.NODE_REST: "node_rest",
    CostLine.IDLE_ADJUSTMENT: "idle_adjustment",
    CostLine.IDLE_SHARED_COST: "idle_shared_cost",
}
UNPRICED = "unpriced_idle_gpu_hours"


@dataclass(frozen=True)
class Costs:
    """Rows by time, highest cost first, and their exact sums, rounded so that the rows add up to them.

    `total` is without the unpriced GPU-hours, and None if those are all there are. `capacity_recorded_since` is by
    cluster, None where none is recorded; empty for who does not see the whole fleet. `billed_share` is the part of the
    cost of capacity that bills cover, from 0 to 1; None for others, and where nothing is billed. `previous` are the
    costs with which these are compared; their `unrecorded_until` is when the ledger begins, if that is after the start
    of their window, and their total then None.
    """

    window: Window
    currency: str
    rows: list[CostRow]
    gpu_hours: str
    unpriced_gpu_hours: str
    total: str | None
    capacity_recorded_since: Mapping[str, datetime | None]
    billed_share: str | None = None
    previous: "Costs | None" = None
    unrecorded_until: datetime | None = None
