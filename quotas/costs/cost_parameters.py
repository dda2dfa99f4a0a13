"""Reads a question about costs from the parameters of a URL, which have OpenCost's words: of REST and of pages."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from django.http import QueryDict

from portal.core.errors import Invalid
from quotas.costs import calendar as calendars
from quotas.costs import filter_grammar, windows
from quotas.costs.calendar import Calendar, Weekday
from quotas.costs.questions import IdleBy, IdleMode, IdleSplit, IdleView, Metric, Question
from quotas.costs.rating import Window
from quotas.costs.steps import Step

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)
WEEKDAYS = {day.name.lower(): day for day in Weekday}
STEPS = {"true": Step.ALL, "false": Step.DAY, **{step.value: step for step in Step}}
METRICS = {metric.value: metric for metric in Metric}
COMPARED = {"": False, "previous": True}


def read(parameters: QueryDict, now: datetime) -> Question:
    """Return the question that the parameters ask, of nobody yet; raise Invalid for what cannot be read."""
    chosen = calendar(parameters)
    return Question(
        window=window(parameters, now, chosen),
        now=now,
        keys=tuple(values(parameters, "aggregate") or ["project"]),
        where=filter_grammar.parse(_value(parameters, "filter")),
        step=_one_of(STEPS, parameters, "accumulate", "all"),
        calendar=chosen,
        metric=_one_of(METRICS, parameters, "cost", "cumulative"),
        idle=_idle_view(parameters),
        is_compared=_one_of(COMPARED, parameters, "compare", ""),
    )


def calendar(parameters: QueryDict) -> Calendar:
    """Return the calendar that the parameters choose."""
    first = _one_of(WEEKDAYS, parameters, "week_start", "monday")
    try:
        return Calendar(calendars.zone(_value(parameters, "timezone", "UTC")), first)
    except ValueError as error:
        raise Invalid({"timezone": [f"{error}. Use a name such as Europe/Berlin, or UTC."]}) from error


def window(parameters: QueryDict, now: datetime, calendar: Calendar) -> Window:
    """Return the window that the parameters choose; the + of an offset (+02:00) may arrive as a space."""
    return windows.parse(_value(parameters, "window", "7d").replace(" ", "+"), now, calendar)


def _idle_view(parameters: QueryDict) -> IdleView | None:
    """Return the view of idle that the parameters choose; None without one."""
    mode = _choice(parameters, "idle", IdleMode.SEPARATE) if "idle" in parameters else None
    by = _choice(parameters, "idle_by", IdleBy.CLUSTER)
    split = _choice(parameters, "idle_split", IdleSplit.WEIGHTED)
    for name, is_default in (("idle_by", by is IdleBy.CLUSTER), ("idle_split", split is IdleSplit.WEIGHTED)):
        if name in parameters and not is_default and mode != IdleMode.SHARE:
            raise Invalid({name: ["It goes with idle=share."]})
    return None if mode is None else IdleView(mode, by, split)


def _choice(parameters: QueryDict, name: str, default: ChoiceT) -> ChoiceT:
    return _one_of({one.value: one for one in type(default)}, parameters, name, default.value)


def _one_of(choices: Mapping[str, T], parameters: QueryDict, name: str, default: str) -> T:
    value = _value(parameters, name, default)
    if value not in choices:
        raise Invalid({name: [f"Use one of {', '.join(filter(None, choices))}."]})
    return choices[value]


def values(parameters: QueryDict, name: str) -> list[str]:
    """Return the values of a parameter, separated by commas or repeated."""
    given = [part for value in parameters.getlist(name) for part in value.split(",") if part]
    return [_checked(name, part) for part in given]


def _value(parameters: QueryDict, name: str, default: str = "") -> str:
    return _checked(name, parameters.get(name, default))


def _checked(name: str, value: str) -> str:
    if "\x00" in value:
        raise Invalid({name: ["It has a character that no name has."]})
    return value
