"""What could be saved: the rules. Pure.

- A hold is idle if no pod of it has run for some hours: since its last pod, or since it began.
- Quiet times are nights, from 20:00 to 06:00, and the days of a weekend, by the clock of a calendar.
- A team's quota of a flavor is unused if it had some guaranteed throughout the window, and held nothing of the flavor.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, NamedTuple
from uuid import UUID

from portal.core.money import Hours
from quotas.costs.calendar import ONE_DAY, Calendar, Weekday
from quotas.costs.rating import RatedUsage, Window
from quotas.metering.stranding import StrandedGpu

NIGHT, MORNING = time(20), time(6)
WEEKEND = (Weekday.SATURDAY, Weekday.SUNDAY)
MIN_GPU_HOURS = Fraction(1)
"""What is less of quiet times in a project is not worth a line."""


class SavingKind(StrEnum):
    IDLE_HOLD = "idle_hold"
    QUIET_HOURS = "quiet_hours"
    UNUSED_QUOTA = "unused_quota"
    STRANDED = "stranded"
    UNPRICED = "unpriced"


class Layout(NamedTuple):
    """What is stranded now of a flavor and would fit one slice."""

    profile: Annotated[str, "The slice that would fit if it were offered; empty if none would."]
    gpus: Annotated[Hours, "Stranded now, as parts of GPUs."]
    gpu_count: Annotated[int, "The GPUs on which they are."]


@dataclass(frozen=True)
class Saving:
    """What could be saved of a thing. Names are empty where they do not apply.

    ``usage`` is that of the window; None if too much of it is not rolled up. ``per_hour`` is what it costs now, None
    without a price or if it is over. ``holder_id`` is an allocation's, or a queued Job's if ``member`` is empty.
    ``layouts`` are what is stranded now, by the slice that would fit, and ``gpus`` the GPUs on which it is.
    """

    kind: SavingKind
    cluster: str
    flavor: str
    usage: RatedUsage | None
    offering: str = ""
    team: str = ""
    project: str = ""
    member: str = ""
    holder_id: UUID | None = None
    since: datetime | None = None
    per_hour: Fraction | None = None
    layouts: Sequence[Layout] = ()
    gpus: Sequence[StrandedGpu] = ()


class PodUse(NamedTuple):
    """When the last pod of a hold ended, None if there was none; and whether one runs."""

    last_end: datetime | None
    is_running: bool


class QuotaStep(NamedTuple):
    """The guaranteed units of a team from a pool from ``at`` on."""

    at: datetime
    team: str
    cluster: str
    flavor: str
    pool: str
    nominal: int


def idle_since(held_since: datetime, use: PodUse | None) -> datetime | None:
    """Return since when a hold has had no pod; None if one runs."""
    if use is None:
        return held_since
    return None if use.is_running else max(held_since, use.last_end or held_since)


def quiet_times(window: Window, calendar: Calendar) -> list[tuple[datetime, datetime]]:
    """Return the quiet times of the window, in order; those that adjoin are one."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in _quiet(window, calendar):
        begin, until = max(start, window.start), min(end, window.end)
        if begin < until:
            if found and found[-1][1] >= begin:
                found[-1] = (found[-1][0], until)
            else:
                found.append((begin, until))
    return found


def cut(spans: Iterable[tuple[datetime, datetime]], moments: Iterable[datetime]) -> list[tuple[datetime, datetime]]:
    """Return the spans, cut at each of the moments that is within one."""
    edges = sorted(set(moments))
    return [
        piece
        for start, end in spans
        for piece in pairwise([start, *(edge for edge in edges if start < edge < end), end])
    ]


def unused_quotas(
    changes: Iterable[QuotaStep], held: Collection[tuple[str, str, str]], window: Window
) -> list[tuple[str, str, str]]:
    """Return (team, cluster, flavor) of quota that was guaranteed throughout the window and of which nothing was held.

    ``changes`` are all until the end of the window in order of time, ``held`` the same triples of what was held.
    """
    least: dict[tuple[str, str, str, str], int] = {}
    for one in changes:
        pool = (one.team, one.cluster, one.flavor, one.pool)
        if one.at <= window.start:
            least[pool] = one.nominal
        elif pool in least:
            least[pool] = min(least[pool], one.nominal)
    found = {pool[:3] for pool, nominal in least.items() if nominal}
    return sorted(found - set(held))


def ordered(found: Iterable[Saving]) -> list[Saving]:
    """Return savings by kind, each with the highest cost first."""
    kinds = list(SavingKind)
    return sorted(found, key=lambda one: (kinds.index(one.kind), *_amounts(one), _names(one)))


def totals(found: Iterable[Saving]) -> Mapping[SavingKind, RatedUsage]:
    """Return what the savings of each kind add up to, of those whose amounts are known."""
    sums: dict[SavingKind, RatedUsage] = {}
    for one in found:
        if one.usage is not None:
            sums[one.kind] = sums.get(one.kind, RatedUsage()) + one.usage
    return sums


def _amounts(one: Saving) -> tuple[Fraction, Fraction]:
    return (-one.usage.priced_cost, -one.usage.gpu_hours) if one.usage else (Fraction(0), Fraction(0))


def _names(one: Saving) -> tuple[str, ...]:
    return one.cluster, one.flavor, one.offering, one.team, one.project, str(one.holder_id)


def _quiet(window: Window, calendar: Calendar) -> Iterator[tuple[datetime, datetime]]:
    """Yield the quiet times from the day before the window on, by day."""
    day, last = calendar.day_of(window.start) - ONE_DAY, calendar.day_of(window.end)
    while day <= last:
        morning, night = _at(day, MORNING, calendar), _at(day, NIGHT, calendar)
        start, end = calendar.start_of(day), calendar.start_of(day + timedelta(days=1))
        if day.weekday() in WEEKEND:
            yield start, end
        else:
            yield start, morning
            yield night, end
        day += ONE_DAY


def _at(day: date, clock: time, calendar: Calendar) -> datetime:
    """Return the moment at which the clock of the calendar shows this time on a day."""
    return datetime.combine(day, clock, calendar.zone).astimezone(UTC)
