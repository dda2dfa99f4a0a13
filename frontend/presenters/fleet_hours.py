"""The GPU-hours of the fleet as a bar and a row for each flavor and day."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from fractions import Fraction

from portal.core import money
from quotas.metering.fleet_hours import FlavorDay
from quotas.metering.parts import Category

PLACES = 2
WIDTH = 1000
TITLES = {
    Category.HELD: "Held",
    Category.UNMANAGED: "Unmanaged",
    Category.UNAVAILABLE: "Unavailable",
    Category.STRANDED: "Stranded",
    Category.IDLE: "Idle",
    Category.VARIANCE: "Variance",
}


@dataclass(frozen=True)
class Segment:
    """A part of the bar, in thousandths of its width."""

    category: str
    x: int
    width: int


@dataclass(frozen=True)
class FleetLine:
    """A flavor's GPU-hours on a day; ``amounts`` are (title, hours) in the order of ``TITLES``."""

    day: str
    flavor: str
    capacity: str
    amounts: Sequence[tuple[str, str]]
    bar: Sequence[Segment]
    summary: str


def lines(found: Iterable[FlavorDay]) -> list[FleetLine]:
    """Return a line for each flavor and day."""
    return [_line(one) for one in found]


def _line(hours: FlavorDay) -> FleetLine:
    amounts = [(title, money.text(hours.parts[category], PLACES)) for category, title in TITLES.items()]
    return FleetLine(
        day=f"{hours.start.astimezone(UTC):%F}",
        flavor=hours.flavor or "not offered",
        capacity=money.text(hours.capacity, PLACES),
        amounts=amounts,
        bar=list(_bar(hours)),
        summary=", ".join(f"{title.lower()} {amount}" for title, amount in amounts),
    )


def _bar(hours: FlavorDay) -> Iterable[Segment]:
    """Yield the parts that are not negative; together they fill the bar."""
    parts = [(category, amount) for category, amount in hours.parts.items() if amount > 0]
    total = sum((amount for _, amount in parts), Fraction(0))
    done = Fraction(0)
    for category, amount in parts:
        x = round(WIDTH * done / total)
        done += amount
        yield Segment(category.value, x, round(WIDTH * done / total) - x)
