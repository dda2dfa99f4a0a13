"""The list of allocations: its columns, and the cells of a row."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from allocations.domain.allocation_spec import Labels
from frontend.presenters import amounts
from frontend.presenters.allocations import Card
from frontend.tables import Column
from portal.core.money import text

ALWAYS = (Column("name", "Name", "name"), Column("phase", "Phase", "phase"))
CHOICES = (
    Column("project", "Project", "project__slug"),
    Column("cluster", "Cluster", "project__cluster"),
    Column("offering", "Offering", "offering__key"),
    Column("count", "Slices", "count", is_number=True),
    Column("person", "Person", "requested_by__username"),
    Column("requested", "Requested", "created_at"),
    Column("time", "Time left", "until"),
    Column("priority", "Priority", "priority"),
    Column("labels", "Labels"),
    Column("rate", "Per hour", "rate", is_number=True),
    Column("cost", "Cost so far", "cost", is_number=True),
)
OF_CARDS = ("rate", "cost")
"""Columns of what the ledger and the prices say, by which no query sorts."""
DEFAULT = ("project", "offering", "count", "person", "requested", "time", "rate", "cost")
CODE = ("offering", "cluster")


@dataclass(frozen=True)
class Cell:
    """``at`` is the time that the cell tells, or None."""

    label: str
    words: str
    at: datetime | None = None
    is_number: bool = False
    is_code: bool = False


@dataclass(frozen=True)
class Line:
    """A row of the list. ``rate`` and ``cost`` are exact, for sorting; None if not priced."""

    card: Card
    cells: Sequence[Cell]

    @property
    def rate(self) -> Fraction | None:
        return self.card.detail.per_hour

    @property
    def cost(self) -> Fraction | None:
        return self.card.detail.charge.cost

    @property
    def can_choose(self) -> bool:
        return self.card.can_release or self.card.can_extend


WORDS: dict[str, Callable[[Card], str]] = {
    "name": lambda card: card.row.name,
    "phase": lambda card: card.badge.word,
    "project": lambda card: card.row.project.slug,
    "cluster": lambda card: card.row.project.cluster_id,
    "offering": lambda card: card.slices if card.row.claim else card.row.offering.key,
    "count": lambda card: amounts.number(card.row.count, 0),
    "person": lambda card: card.row.requested_by.username,
    "requested": lambda card: f"{card.row.created_at:%Y-%m-%dT%H:%M:%SZ}",
    "time": lambda card: card.time,
    "priority": lambda card: card.row.priority,
    "labels": lambda card: str(Labels.from_json(card.row.labels)) if card.row.labels else "–",
    "rate": lambda card: amounts.rate(card.detail.per_hour),
    "cost": lambda card: amounts.marked(amounts.money(card.detail.charge.cost), _left_out(card)),
}


def columns(chosen: object, currency: str) -> list[Column]:
    """Return the columns that a person chose, by default the most used ones; those of money with the currency."""
    names = chosen if isinstance(chosen, list) else DEFAULT
    found = [*ALWAYS, *(one for one in CHOICES if one.name in names)]
    return [replace(one, word=f"{one.word} ({currency})") if one.name in OF_CARDS else one for one in found]


def choices(shown: Iterable[Column]) -> list[tuple[str, str, bool]]:
    """Return the columns that a person can choose: name, word, and whether it is shown."""
    names = {one.name for one in shown}
    return [(one.name, one.word, one.name in names) for one in CHOICES]


def lines(cards: Iterable[Card], shown: Sequence[Column]) -> list[Line]:
    """Return the rows with a cell for each column that the person chose."""
    chosen = [one for one in shown if one.name in {each.name for each in CHOICES}]
    return [Line(card, [_cell(card, column) for column in chosen]) for card in cards]


def csv_row(card: Card, shown: Iterable[Column]) -> list[str]:
    """Return the values of a row; numbers without separators, empty where nothing is known."""
    exact = {
        "count": str(card.row.count),
        "rate": _plain(card.detail.per_hour),
        "cost": _plain(card.detail.charge.cost),
        "time": f"{card.row.ends_at:%Y-%m-%dT%H:%M:%SZ}" if card.row.ends_at else "",
    }
    return [exact[one.name] if one.name in exact else WORDS[one.name](card) for one in shown]


def is_incomplete(found: Iterable[Line]) -> bool:
    return any(_left_out(line.card) for line in found)


def _cell(card: Card, column: Column) -> Cell:
    at = card.row.created_at if column.name == "requested" else None
    return Cell(column.word, WORDS[column.name](card), at, column.is_number, column.name in CODE)


def _left_out(card: Card) -> Fraction:
    charge = card.detail.charge
    return Fraction(0) if charge.cost is None else charge.unpriced


def _plain(amount: Fraction | None) -> str:
    return "" if amount is None else text(amount)
