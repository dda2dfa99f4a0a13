"""Prices, costs of nodes, bills and fixed costs as lines with their state, and what a change of them does."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from frontend import time_zone
from frontend.presenters import amounts
from frontend.tables import Column
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Offering
from quotas.costs import selectors, withdrawals
from quotas.costs.cost_rows import COLUMNS, CostRow, Costs
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.previews import BILLED_MONTHS, BillEffect, PriceEffect
from quotas.costs.price_tables import split_of
from quotas.costs.price_variance import CostLine
from quotas.costs.public_prices import PublicPrice
from quotas.costs.withdrawals import Dated
from quotas.metering.parts import Category

IN_FORCE, SCHEDULED, REPLACED, CURRENT = "in force", "scheduled", "replaced", "current"
NONE = "none"
OF_FLAVOR = "the price of its flavor"
UNKNOWN = "unknown"
OF_BILLS = {COLUMNS[CostLine.IDLE_ADJUSTMENT], COLUMNS[CostLine.IDLE_SHARED_COST]}
RATED = ("cost", *(name for name in COLUMNS.values() if name not in OF_BILLS))
"""The columns that are together what capacity costs by prices and costs of nodes."""
PART_NAMES = {
    "cost": "Charged to holders",
    COLUMNS[Category.IDLE]: "Idle GPUs",
    COLUMNS[Category.STRANDED]: "Stranded GPUs",
    COLUMNS[Category.UNAVAILABLE]: "Unavailable GPUs",
    COLUMNS[Category.UNMANAGED]: "Used without an allocation",
    COLUMNS[Category.VARIANCE]: "Usage variance (GPUs in use minus GPUs charged)",
    COLUMNS[CostLine.PRICE_VARIANCE]: "Price variance (GPU cost minus GPU price)",
    COLUMNS[CostLine.NODE_REST]: "Node costs other than GPUs (CPU and memory)",
}


@dataclass(frozen=True)
class DatedLine:
    """A price, a cost or a term with the time in which it counts; ``until`` is None while nothing replaces it.

    ``kind`` and ``id_`` name the row (`quotas.costs.withdrawals.KINDS`).
    """

    kind: str
    id_: int
    subject: str
    value: str
    note: str
    since: datetime | date
    until: datetime | date | None
    state: str
    source: str

    @property
    def is_scheduled(self) -> bool:
        return self.state == SCHEDULED


@dataclass(frozen=True)
class Change:
    """A value before and after a change."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Effect:
    """What a change does: from a time or a month on, with sentences beside it."""

    changes: Sequence[Change]
    since: datetime | None = None
    month: str = ""
    facts: Sequence[str] = ()


@dataclass(frozen=True)
class PublicLine:
    """A public list price. ``form`` is the query of the form that would state it as a cost, empty for who may not, and
    if the amounts of the portal have another currency.
    """

    price: PublicPrice
    form: str


@dataclass(frozen=True)
class CapacityPart:
    """A part of what capacity costs, and its share in per cent; negative where more is charged than it costs."""

    name: str
    cost: str
    share: str


@dataclass(frozen=True)
class BillLine:
    """A bill; of several for a month the newest counts."""

    cluster: str
    month: str
    amount: str
    recorded_at: datetime
    state: str
    source: str


@dataclass(frozen=True)
class MonthLine:
    """What the capacity of a cluster cost in a month by prices and costs of nodes, its bill, and the difference.

    ``reason`` says why the capacity cost is unknown; empty if it is known.
    """

    month: str
    cluster: str
    capacity: str
    bill: str
    difference: str
    reason: str


def exact(amount: Decimal | Fraction, currency: str = "") -> str:
    """Return an amount with all its decimals, at least two."""
    value = Decimal(amount) if isinstance(amount, Decimal) else Decimal(amount.numerator) / amount.denominator
    places = -int(value.normalize().as_tuple().exponent)
    return f"{value:,.{max(2, places)}f} {currency}".strip()


def per_cent(share: Decimal | str | None) -> int | None:
    return None if share is None else round(100 * Decimal(share))


def dated_columns(of: str, subject: str | tuple[str, ...], value: str, amount: str | tuple[str, ...]) -> list[Column]:
    """Return the columns of a table of dated rows: what each is of, and its value, with the fields of both."""
    return [
        Column("of", of, subject),
        Column("value", value, amount, is_number=True),
        Column("since", "From", "valid_from"),
        Column("until", "Until", "until"),
        Column("state", "State"),
        Column("source", "Source"),
    ]


def dated_lines(kind: str, rows: Iterable[Any], now: datetime) -> list[DatedLine]:
    """Return rows of a kind of `withdrawals.KINDS`, each with its ``until``; times of fixed costs are months."""
    at = now.date() if kind == "fixed-cost" else now
    return [
        DatedLine(
            kind=kind,
            id_=row.pk,
            subject=_subject(row),
            value="ended" if kind == "fixed-cost" and not row.amount else value_of(row),
            note=_note(row),
            since=withdrawals.begins(row),
            until=row.until,
            state=_state(withdrawals.begins(row), row.until, at),
            source="" if kind == "node-term" else row.source,
        )
        for row in rows
    ]


def bill_lines(rows: Iterable[Bill], newest: Collection[int]) -> list[BillLine]:
    """Return bills; ``newest`` are the ids of those that count."""
    return [
        BillLine(
            cluster=row.cluster_id,
            month=f"{row.month:%Y-%m}",
            amount=exact(row.amount, row.currency),
            recorded_at=row.recorded_at,
            state=CURRENT if row.pk in newest else REPLACED,
            source=row.source,
        )
        for row in rows
    ]


def month_lines(costs: Costs, bills: Mapping[tuple[str, date], Bill]) -> list[MonthLine]:
    """Return months and clusters, latest first; ``costs`` are by cluster and month with what nobody held."""
    found = []
    for row in reversed(costs.rows):
        cluster, month = row.properties["cluster"], row.window.start.date()
        bill = bills.get((cluster, month))
        rated = _sum(getattr(row, name) for name in RATED)
        difference = _sum((row.adjustment, row.idle_adjustment)) if bill else None
        found.append(
            MonthLine(
                month=f"{month:%Y-%m}",
                cluster=cluster,
                capacity=UNKNOWN if rated is None else f"{rated:,.2f}",
                bill=f"{bill.amount:,.2f}" if bill else "–",
                difference="–" if not bill else UNKNOWN if difference is None else f"{difference:+,.2f}",
                reason="" if rated is not None else _why_unknown(costs.capacity_recorded_since.get(cluster), row),
            )
        )
    return found


def capacity_parts(costs: Costs) -> list[CapacityPart]:
    """Return what the cost of capacity is made of, in rows of which all of it is known, and at last the sum; empty if
    nothing costs anything.
    """
    known = [row for row in costs.rows if None not in (getattr(row, name) for name in RATED)]
    amounts = {name: sum((Decimal(getattr(row, name)) for row in known), Decimal(0)) for name in RATED}
    whole = sum(amounts.values(), Decimal(0))
    if not whole:
        return []
    parts = [(PART_NAMES[name], amount) for name, amount in amounts.items() if amount]
    return [
        CapacityPart(name, f"{amount:,.2f}", f"{100 * amount / whole:.1f}")
        for name, amount in (*parts, ("Capacity", whole))
    ]


def public_lines(prices: Iterable[PublicPrice], currency: str | None, *, may_set: bool) -> list[PublicLine]:
    """Return public list prices; ``currency`` is that of the portal, None before its first amount."""
    return [PublicLine(one, _as_cost(one) if may_set and currency in (None, one.currency) else "") for one in prices]


def value_of(row: Dated) -> str:
    """Return the amount of a dated row with its unit, or its term."""
    match row:
        case Price(offering_id=None):
            return f"{exact(row.per_gpu_hour or Decimal(0), row.currency)} per GPU-hour"
        case Price():
            return (
                OF_FLAVOR if row.per_slice_hour is None else f"{exact(row.per_slice_hour, row.currency)} per slice-hour"
            )
        case NodeCost():
            return f"{exact(row.per_hour, row.currency)} per {row.get_per_display()} and hour"
        case NodeTerm():
            return row.term
    return f"{exact(row.amount, row.currency)} a month"


def _subject(row: Dated) -> str:
    match row:
        case NodeCost() | NodeTerm() if row.node:
            return f"{row.node.cluster_id}/{row.node.name}"
        case NodeCost():
            return f"{row.flavor}, {row.term}"
    return withdrawals.subject(row)


def _note(row: Dated) -> str:
    """Return how a cost is split; empty if it is not."""
    if isinstance(row, SharedCost):
        return _shared_by(row)
    return f"split by {split_of(row)}" if isinstance(row, NodeCost) and row.per == NodeCost.Per.NODE else ""


def price_effect(found: PriceEffect) -> Effect:
    row = found.price
    before = value_of(found.before) if found.before else NONE
    changes = [Change(f"Price of {_subject(row)}", before, value_of(row))]
    for one in found.slices:
        before, after = (amounts.rate(amount, row.currency) for amount in (one.before, one.after))
        changes.append(Change(f"One slice-hour of {one.offering}", before, after))
    return Effect(changes, since=row.valid_from, facts=["Running allocations pay the new price from that time on."])


def node_cost_effect(row: NodeCost, before: NodeCost | None) -> Effect:
    change = Change(f"Cost of {_subject(row)}", value_of(before) if before else NONE, value_of(row))
    facts = ["Prices for teams do not change. The difference is the platform's price variance."]
    return Effect([change], since=row.valid_from, facts=facts)


def node_term_effect(row: NodeTerm, before: NodeTerm | None) -> Effect:
    change = Change(f"Term of {_subject(row)}", before.term if before else NONE, row.term)
    facts = ["If a label of the node has its term, the label takes precedence."]
    return Effect([change], since=row.valid_from, facts=facts)


def bill_effect(found: BillEffect) -> Effect:
    row = found.bill
    before = exact(found.before.amount, row.currency) if found.before else NONE
    change = Change(f"Bill of {row.cluster_id}", before, exact(row.amount, row.currency))
    facts, covered = _shared(found), per_cent(found.billed_share)
    if covered is not None:
        facts.append(f"Bills then cover {covered} % of what GPUs and nodes cost in the last {BILLED_MONTHS} months.")
    return Effect([change], month=f"{row.month:%Y-%m}", facts=facts)


def shared_cost_effect(row: SharedCost, before: SharedCost | None) -> Effect:
    change = Change(
        row.name,
        f"{value_of(before)}, {_shared_by(before)}" if before else NONE,
        f"{value_of(row)}, {_shared_by(row)}",
    )
    return Effect([change], month=f"{row.month:%Y-%m}")


def not_priced(at: datetime) -> dict[str, list[str]]:
    """Return the offerings that are offered and have no price, by flavor; two queries."""
    offered = list(catalog.offerings().order_by("key"))
    return without_price(offered, selectors.prices_per_hour(offered, at))


def without_price(offered: Iterable[Offering], prices: Container[str]) -> dict[str, list[str]]:
    """Return the offerings that have none of the prices, by flavor."""
    found: dict[str, list[str]] = {}
    for one in offered:
        if one.key not in prices:
            found.setdefault(one.flavor.name, []).append(one.key)
    return found


def _shared(found: BillEffect) -> list[str]:
    """Return how the difference of a bill is shared, as sentences."""
    unit, capacity = found.bill.currency, found.capacity_cost
    if capacity is None or found.of_holders is None or found.of_idle is None:
        return [
            "The difference between bill and capacity cost is not known: the cluster was not recorded from the first "
            "day of the month, or too many of its hours are not rolled up yet. Totals of the month are not known until "
            "then."
        ]
    whole, held, idle = found.of_holders + found.of_idle, found.of_holders, found.of_idle
    return [
        f"At prices and node costs, the capacity of {found.bill.cluster_id} cost {capacity:,.2f} {unit} in that month.",
        f"The difference is {whole:+,.2f} {unit}: {held:+,.2f} {unit} is charged to teams in proportion to their cost, "
        f"and {idle:+,.2f} {unit} stays with the platform, for unallocated capacity.",
    ]


def _why_unknown(recorded_since: datetime | None, row: CostRow) -> str:
    """Return why it is not known what the capacity of a cluster cost in the month of this row."""
    if recorded_since is None:
        return "not recorded"
    if recorded_since > row.window.start:
        return f"recorded only since {time_zone.words(recorded_since)}"
    if Decimal(row.unpriced_gpu_hours) or Decimal(row.unpriced_idle_gpu_hours or 0):
        return "some GPUs have no price"
    return "not rolled up yet"


def _as_cost(price: PublicPrice) -> str:
    values = {"term": price.term, "per": "node", "amount": f"{price.per_node_hour:f}", "currency": price.currency}
    return urlencode({**values, "source": price.stated_source})


def _shared_by(row: SharedCost) -> str:
    where = f" on {row.cluster_id}" if row.cluster_id else ""
    if row.split == SharedCost.Split.WEIGHTED:
        return f"in proportion to GPU cost{where}"
    return f"evenly between {', '.join(row.teams)}{where}"


def _state(since: date, until: date | None, now: date) -> str:
    if since > now:
        return SCHEDULED
    return REPLACED if until is not None and until <= now else IN_FORCE


def _sum(texts: Iterable[str | None]) -> Decimal | None:
    known = list(texts)
    return None if None in known else sum((Decimal(text or 0) for text in known), Decimal(0))
