"""The GPU-hours of the fleet as a bar and a row for each flavor and day."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from django.utils import timezone

from frontend.presenters.amounts import number
from quotas.metering import stranded_gpus
from quotas.metering.fleet_hours import FlavorDay
from quotas.metering.ledger_starts import capacity_recorded_since
from quotas.metering.parts import Category
from quotas.metering.stranding import StrandedGpus

WIDTH = 1000
UNKNOWN = "unknown"
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

    @property
    def place(self) -> tuple[str, str]:
        """Return where it begins and how wide it is, in per cent."""
        return f"{self.x / 10:g}%", f"{self.width / 10:g}%"


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


def recorded_since(start: datetime) -> list[str]:
    """Return a sentence for each cluster whose capacity is not recorded from ``start`` on."""
    return [
        f"The capacity of cluster {cluster} is {_since(since)}. Of the time before, only what was held is known."
        for cluster, since in sorted(capacity_recorded_since().items())
        if since is None or since > start
    ]


def stranded(found: Iterable[FlavorDay]) -> list[str]:
    """Return a sentence for each flavor and slice that would fit what is stranded now; no query if nothing was."""
    if not any(one.parts[Category.STRANDED] for one in found):
        return []
    return [_stranded(one) for one in stranded_gpus.current()]


def _stranded(one: StrandedGpus) -> str:
    """Return ``0.43 GPUs of h100 are stranded now, on 1 GPU: a 1g.10gb would fit, and is not offered.``"""
    on = f"{one.count} GPU" if one.count == 1 else f"{one.count} GPUs"
    hint = f"a {one.profile} would fit, and is not offered" if one.profile else "no slice fits"
    return f"{number(one.gpus)} GPUs of {one.flavor} are stranded now, on {on}: {hint}."


def _since(moment: datetime | None) -> str:
    return f"recorded since {moment.astimezone(UTC):%F %H:%M} UTC" if moment else "not recorded yet"


def _line(hours: FlavorDay) -> FleetLine:
    is_known = hours.is_capacity_known
    amounts = [
        (title, number(hours.parts[category]) if is_known or category == Category.HELD else UNKNOWN)
        for category, title in TITLES.items()
    ]
    return FleetLine(
        day=f"{timezone.localtime(hours.start):%F}",
        flavor=hours.flavor or "not offered",
        capacity=number(hours.capacity) if is_known else UNKNOWN,
        amounts=amounts,
        bar=list(_bar(hours)) if is_known else [],
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
