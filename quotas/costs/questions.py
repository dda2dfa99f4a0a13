"""A question about costs: what is asked, who asks, and as of when. It goes down from REST and pages to what reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from portal.core.errors import Forbidden
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import columns, filters, steps, windows
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.filters import EVERYTHING, Filter
from quotas.costs.rating import MICROSECOND, MICROSECONDS_PER_HOUR, Window
from quotas.costs.steps import Step

HOURS_PER_MONTH = 730
"""As OpenCost has it: a year of 8,760 hours, in twelve parts."""


class Metric(StrEnum):
    """What amounts of money are: the cost of the window, or its cost for each hour, day or month at its pace."""

    CUMULATIVE = "cumulative"
    HOURLY = "hourly"
    DAILY = "daily"
    MONTHLY = "monthly"


HOURS = {Metric.HOURLY: 1, Metric.DAILY: 24, Metric.MONTHLY: HOURS_PER_MONTH}


class IdleMode(StrEnum):
    SEPARATE = "separate"
    HIDE = "hide"
    SHARE = "share"
    OWNER = "owner"


class IdleBy(StrEnum):
    """Between the holders of what idle cost is shared."""

    CLUSTER = "cluster"
    FLAVOR = "flavor"
    NODE = "node"


class IdleSplit(StrEnum):
    """In proportion to cost, or evenly between the rows of the answer."""

    WEIGHTED = "weighted"
    EVEN = "even"


@dataclass(frozen=True)
class IdleView:
    """In which rows idle cost is. ``by`` and ``split`` are for ``share``."""

    mode: IdleMode = IdleMode.SEPARATE
    by: IdleBy = IdleBy.CLUSTER
    split: IdleSplit = IdleSplit.WEIGHTED


HIDDEN = IdleView(IdleMode.HIDE)


@dataclass(frozen=True)
class Question:
    """What is asked of the costs of a window, as of ``now``.

    ``keys`` are those of ``columns``, or ``columns.ALL`` alone. Without an ``idle`` view it is the one with most that
    may be seen. ``teams`` are the slugs of the teams whose costs may be seen, None for all; before ``asked_by`` says
    so, nothing may. ``cuts`` are the bounds of the steps of a part of a longer window; else the calendar has them.
    """

    window: Window
    now: datetime
    keys: Sequence[str] = ("project",)
    where: Filter = EVERYTHING
    step: Step = Step.ALL
    calendar: Calendar = UTC_CALENDAR
    metric: Metric = Metric.CUMULATIVE
    idle: IdleView | None = HIDDEN
    is_compared: bool = False
    teams: Sequence[str] | None = ()
    cuts: Sequence[datetime] = ()

    def check(self) -> None:
        """Raise Invalid for a key or a filter that costs do not have, and for more steps than an answer may have."""
        _ = self.row_keys, self.scope, self.edges

    @cached_property
    def row_keys(self) -> list[str]:
        """The keys of which each row has a value; none if everything is in one row. Raises Invalid."""
        return columns.grouped_by(self.keys)

    @cached_property
    def scope(self) -> Filter:
        """The filter, and of what it keeps only what may be seen. Raises Invalid."""
        columns.check("filter", filters.keys(self.where))
        return self.where if self.teams is None else filters.both(self.where, {"team": self.teams})

    @cached_property
    def edges(self) -> Sequence[datetime]:
        """The bounds of the steps, in order. Raises Invalid."""
        return self.cuts or steps.edges(self.window, self.step, self.calendar)

    @property
    def passed(self) -> Window:
        """The part of the window that is before ``now``; empty if it has not begun."""
        return Window(self.window.start, max(self.window.start, min(self.window.end, self.now)))

    @property
    def sees_all(self) -> bool:
        return self.teams is None

    @property
    def idle_view(self) -> IdleView:
        if self.idle is None:
            return IdleView() if self.sees_all else HIDDEN
        return self.idle

    def factor(self, window: Window) -> Fraction:
        """Return by what the money of a window is multiplied; of a rate only the time until ``now`` counts, and it is 0
        if there is none.
        """
        if self.metric is Metric.CUMULATIVE:
            return Fraction(1)
        elapsed = (min(window.end, self.now) - window.start) // MICROSECOND
        return Fraction(HOURS[self.metric] * MICROSECONDS_PER_HOUR, elapsed) if elapsed > 0 else Fraction(0)

    def of_previous_window(self) -> "Question":
        """Return the same question of the window before this one. Raises Invalid."""
        return replace(self, window=windows.previous(self.window, self.now, self.calendar), is_compared=False)

    def between(self, edges: Sequence[datetime]) -> "Question":
        """Return the same question of the steps between these edges."""
        return replace(self, window=Window(edges[0], edges[-1]), cuts=tuple(edges))

    def parts(self, count: int) -> Iterator["Question"]:
        """Yield the same question of so many steps at a time."""
        for first in range(0, len(self.edges) - 1, count):
            yield self.between(self.edges[first : first + count + 1])


def asked_by(user: User, question: Question) -> Question:
    """Return the question of what ``user`` may see: of the teams whose things they may read, or of all.

    Raises Forbidden for a view of idle that tells what all teams together use, unless they see all of it.
    """
    if access.sees_all(user):
        return replace(question, teams=None)
    if question.idle is not None and question.idle.mode in (IdleMode.SEPARATE, IdleMode.SHARE):
        raise Forbidden(
            "auditor",
            detail=f"idle={question.idle.mode.value} tells what all teams together use. Operators and auditors see it.",
            hint="Use idle=hide, or idle=owner for what your teams have and do not use.",
        )
    return replace(question, teams=tuple(access.visible_teams(user).values_list("slug", flat=True)))
