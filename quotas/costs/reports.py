"""Answers a question about costs: which window, grouped and filtered how, and compared with what."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.tenants.models import User
from quotas.costs import comparison, steps, windows
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.comparison import Edges
from quotas.costs.cost_rows import Costs
from quotas.costs.filters import EVERYTHING, Where
from quotas.costs.fleet_costs import Readings
from quotas.costs.idle_views import IdleView
from quotas.costs.rating import Window
from quotas.costs.run_rates import Metric
from quotas.costs.selectors import visible_costs
from quotas.costs.steps import Step


@dataclass(frozen=True)
class CostQuery:
    """A question about costs. Without an `idle` view it is the one with most that the person may see."""

    window: Window
    keys: tuple[str, ...] = ("project",)
    where: Where = EVERYTHING
    step: Step = Step.ALL
    calendar: Calendar = UTC_CALENDAR
    metric: Metric = Metric.CUMULATIVE
    idle: IdleView | None = None
    is_compared: bool = False

    def options(self) -> dict[str, Any]:
        """Return what a question asks whatever its window is, as `visible_costs` and `visible_question` take it."""
        return {
            "idle": self.idle,
            "step": self.step,
            "calendar": self.calendar,
            "where": self.where,
            "metric": self.metric,
        }


def report(user: User, query: CostQuery, now: datetime, readings: Readings | None = None) -> Costs:
    """Return the costs that `user` may see, as of `now`; those of two windows in twice as many queries. Answers with
    the same `readings` share what they read.
    """
    found = _costs(user, query, query.window, now, readings)
    if not query.is_compared:
        return found
    before = windows.previous(query.window, now, query.calendar)
    edges = [steps.edges(window, query.step, query.calendar) for window in (query.window, before)]
    return comparison.compared(found, _costs(user, query, before, now), Edges(*edges))


def _costs(user: User, query: CostQuery, window: Window, now: datetime, readings: Readings | None = None) -> Costs:
    return visible_costs(user, window, query.keys, now=now, readings=readings, **query.options())
