"""Rows of costs, in OpenCost's shape; amounts are decimal strings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from quotas.costs.fleet_costs import Column
from quotas.costs.price_variance import CostLine
from quotas.costs.rating import Window
from quotas.metering.parts import Category


@dataclass(frozen=True)
class Past:
    """What a row was in the window before. Zero if it was not there. Cost and total are None if it is not priced, or if
    that window was not recorded from its start on.
    """

    gpu_hours: str = "0.000000"
    unpriced_gpu_hours: str = "0"
    cost: str | None = "0.0000"
    total: str | None = "0.0000"


@dataclass(frozen=True)
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

    name: str
    window: Window
    gpu_hours: str
    unpriced_gpu_hours: str
    cost: str | None
    total: str | None
    currency: str
    idle_cost: str | None = "0"
    stranded_cost: str | None = "0"
    unavailable_cost: str | None = "0"
    unmanaged_cost: str | None = "0"
    variance: str | None = "0"
    unpriced_idle_gpu_hours: str | None = "0"
    price_variance: str | None = "0"
    node_rest: str | None = "0"
    idle_adjustment: str | None = "0"
    idle_shared_cost: str | None = "0"
    adjustment: str | None = "0"
    shared_cost: str | None = "0"
    properties: Mapping[str, str] = field(default_factory=dict)
    previous: Past | None = None
    change: str | None = None


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
