"""The form of the costs page: what may be chosen, and the parameters of REST that a choice means."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.http import QueryDict

from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_filters import OPERATORS, with_comparison
from frontend.presenters.costs_names import KEYS, key_word
from portal.core import labels
from portal.core.errors import Invalid
from quotas.costs import filter_grammar
from quotas.costs.calendar import ONE_DAY, Weekday, month_of, months_later
from quotas.costs.columns import ALL, LABEL, label_key
from quotas.costs.filters import Comparison, Operator
from quotas.costs.steps import Step
from quotas.costs.windows import DAY_ALONE

CUSTOM = "custom"
MONTHS = 12
"""So many months back can be chosen by name."""
WINDOWS = {
    "today": "today",
    "yesterday": "yesterday",
    "week": "this week",
    "lastweek": "last week",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "month": "this month",
    "lastmonth": "last month",
    "90d": "last 90 days",
    "365d": "last 365 days",
}
METRICS = {"": "cost of the period", "hourly": "per hour", "daily": "per day", "monthly": "per month (730 hours)"}
STEPS = {"": "automatic", "hour": "hour", "day": "day", "week": "week", "month": "month"}
OWN_IDLE = {"hide": "hidden", "owner": "with the owner of the unused quota"}
ALL_IDLE = {
    "separate": "separate",
    "hide": "hidden",
    "owner": "with the owner of the unused quota",
    "share:cluster": "shared by cluster",
    "share:flavor": "shared by flavor",
    "share:node": "shared by node",
}
SPLITS = {"": "in proportion to cost", "even": "evenly"}
WEEK_STARTS = {"" if day is Weekday.MONDAY else day.name.lower(): day.name.capitalize() for day in Weekday}
FILTER_KEYS = {**KEYS, LABEL: "Label (key=value)"}
ZONES = (
    *("UTC", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "Europe/London", "Europe/Berlin"),
    *("Africa/Johannesburg", "Asia/Dubai", "Asia/Kolkata", "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney"),
)
"""Suggestions for readers without scripts; with them the browser offers all that it knows."""
SORTS = {"": "cost", "change": "change", "gpu_hours": "GPU-hours", "idle": "idle", "name": "name"}
LABEL_VALUE = "Write a label as its key and its value, such as stage=prod; several values as stage=prod,test."
QUOTE = "No filter can have a value with a quotation mark. Choose contains, and a part of the value without it."


@dataclass(frozen=True)
class Choice:
    """A field with options, of which one is chosen."""

    name: str
    label: str
    options: Mapping[str, str]
    value: str


def with_chosen(window: str, offered: Mapping[str, str]) -> dict[str, str]:
    """Return the windows that are offered, and the given one, which an address may have in any form of REST."""
    return {**offered, **({} if window in offered else {window: window})}


def is_submitted(given: QueryDict) -> bool:
    """Return whether the parameters are those of the form, not of an address."""
    return "when" in given


def meaning(given: QueryDict) -> dict[str, str]:
    """Return the parameters of REST that the form's fields mean, without defaults. Raises Invalid for a comparison that
    cannot be read.
    """
    values = choices(given) | {"filter": _filter(given)}
    return {name: value for name, value in values.items() if value}


def choices(given: QueryDict) -> dict[str, str]:
    """Return the same with the filter as its text has it, whatever comparison is added."""
    mode, _, by = given.get("idle_view", "").partition(":")
    keys = [_key(given, "by", "label"), _key(given, "then", "then_label")]
    values = {
        "window": _window(given),
        "timezone": given.get("timezone", "").strip(),
        "week_start": given.get("week_start", ""),
        "aggregate": ",".join(dict.fromkeys(filter(None, keys if ALL not in keys else keys[:1]))),
        "filter": given.get("filter", "").strip(),
        "idle": mode,
        "idle_by": by,
        "idle_split": given.get("split", "") if mode == "share" else "",
        "cost": given.get("cost", ""),
        "accumulate": given.get("accumulate", ""),
        "sort": given.get("sort", ""),
    }
    return {name: value for name, value in values.items() if value}


def fields(
    address: CostsAddress, given: QueryDict, today: date, *, sees_all: bool, default_idle: str
) -> dict[str, Any]:
    """Return what the form shows for an address; ``given`` are the reader's own words, should they be wrong."""
    value = address.values
    keys = value["aggregate"].split(",")
    by, then = keys[0], keys[1] if len(keys) > 1 else ""
    window = CUSTOM if given.get("when") == CUSTOM else value["window"]
    by_options = {**KEYS, **{key: key_word(key) for key in keys}, ALL: "Total"}
    then_options = {"": "–", **{key: word for key, word in by_options.items() if key != ALL}}
    idle = value.get("idle", default_idle)
    idle_view = f"share:{value.get('idle_by', 'cluster')}" if idle == "share" else idle
    return {
        "when": Choice("when", "When", _windows(value["window"], today), window),
        "by": Choice("by", "By", by_options, by),
        "then": Choice("then", "Then by", then_options, then),
        "idle_view": Choice("idle_view", "Idle cost", ALL_IDLE if sees_all else OWN_IDLE, idle_view),
        "split": Choice("split", "Share idle cost", SPLITS, value.get("idle_split", "").replace("weighted", "")),
        "cost": Choice("cost", "Show", METRICS, value.get("cost", "").replace("cumulative", "")),
        "accumulate": Choice("accumulate", "Chart by", STEPS, value.get("accumulate", "")),
        "week_start": Choice("week_start", "Weeks start on", WEEK_STARTS, value.get("week_start", "")),
        "key": Choice("key", "Filter by", FILTER_KEYS, given.get("key", by)),
        "op": Choice("op", "Condition", OPERATORS, given.get("op", Operator.EQUALS.value)),
        "given": {name: given.get(name, "") for name in ("first", "last", "value", "label", "then_label")},
    }


def days(start: datetime, end: datetime) -> dict[str, str]:
    """Return the first and the last day of a window, of the calendar whose times these are. Its end is not in it."""
    return {"first": f"{start:%Y-%m-%d}", "last": f"{end - timedelta.resolution:%Y-%m-%d}"}


def _windows(window: str, today: date) -> dict[str, str]:
    months = (months_later(month_of(today), -count) for count in range(2, MONTHS + 1))
    earlier = {f"{month},{months_later(month, 1)}": f"{month:%B %Y}" for month in months}
    known = {CUSTOM: "custom days", **WINDOWS, **earlier}
    return known if window in known else {**known, window: window.replace(",", " – ")}


def _window(given: QueryDict) -> str:
    when, first, last = (given.get(name, "").strip() for name in ("when", "first", "last"))
    if when != CUSTOM:
        return when
    try:
        after = date.fromisoformat(last) + ONE_DAY if DAY_ALONE.fullmatch(last) else last
    except (ValueError, OverflowError):
        after = last
    return f"{first},{after}"


def _key(given: QueryDict, name: str, label: str) -> str:
    """Return the key that is chosen, or that of a label if one is named."""
    named = given.get(label, "").strip()
    return label_key(named) if named else given.get(name, "")


def _filter(given: QueryDict) -> str:
    text, value = given.get("filter", "").strip(), given.get("value", "").strip()
    if not value:
        return text
    where = filter_grammar.parse(text)
    operator, key = given.get("op", Operator.EQUALS.value), given.get("key", "")
    if operator not in OPERATORS or key not in FILTER_KEYS:
        raise Invalid({"filter": ["Choose a key and a condition."]})
    if key == LABEL:
        name, _, value = (part.strip() for part in value.partition("="))
        if not (labels.is_key(name) and value):
            raise Invalid({"filter": [LABEL_VALUE]})
        key = label_key(name)
    values = tuple(part for each in value.split(",") if (part := each.strip()))
    comparison = Comparison(key, Operator(operator.removeprefix("!")), values, is_negated=operator.startswith("!"))
    try:
        return with_comparison(where, comparison)
    except ValueError as error:
        raise Invalid({"filter": [QUOTE]}) from error


def sort_choice(given: str) -> str:
    """Return the order of rows; raise Invalid for one that there is not."""
    if given not in SORTS:
        raise Invalid({"sort": [f"Use one of {', '.join(filter(None, SORTS))}."]})
    return given


def step_choice(given: str) -> Step | None:
    """Return the step of the chart that an address chooses; None without one. Raises Invalid."""
    if given not in STEPS:
        raise Invalid({"accumulate": [f"Use one of {', '.join(filter(None, STEPS))}."]})
    return Step(given) if given else None
