"""The query parameters of costs, which have OpenCost's words."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.api.http.strict import query_choice, query_value, query_values
from portal.core.errors import Invalid
from quotas.costs import calendar as calendars
from quotas.costs import columns, filter_grammar, windows
from quotas.costs.calendar import Calendar, Weekday
from quotas.costs.idle_views import IdleBy, IdleMode, IdleSplit, IdleView
from quotas.costs.rating import Window
from quotas.costs.reports import CostQuery
from quotas.costs.run_rates import Metric
from quotas.costs.steps import Step

T = TypeVar("T")
WEEKDAYS = {day.name.lower(): day for day in Weekday}
STEPS = {"true": Step.ALL, "false": Step.DAY, **{step.value: step for step in Step}}
METRICS = {metric.value: metric for metric in Metric}
COMPARED = {"": False, "previous": True}
ZONE_HELP = "Of the IANA database, such as Europe/Berlin: days, weeks and months are its own, with 23 and 25 hours too."
AGGREGATE_HELP = f"Of {', '.join(columns.KEYS)} and label:<key>, several with commas; or all."
IDLE_HELP = (
    "separate: in rows of its own. share: in the rows of who held something, by `idle_by` and `idle_split`. "
    "owner: in the rows of the teams and departments whose unused quota it is. hide: without what nobody is charged "
    "for. By default separate for platform staff, hide for others, who may also use owner."
)
IDLE_BY_HELP = "With idle=share: between whom. node: where Kubernetes names no GPU, the flavor."
IDLE_SPLIT_HELP = "With idle=share: in proportion to cost, or evenly between the rows."
FILTER_HELP = 'As OpenCost: team:"vision","language"+(kind!:"shared"|label[stage]:"prod").'
COST_HELP = "Money: of the window, or by hour, day or month (730 hours) at the pace of the time until now."
COMPARE_HELP = "previous: beside the window before, as long as what has passed of this one."
FILTER = OpenApiParameter("filter", OpenApiTypes.STR, description=FILTER_HELP)
TIMES = [
    OpenApiParameter("window", OpenApiTypes.STR, default="7d", description=windows.WORKS),
    OpenApiParameter("timezone", OpenApiTypes.STR, default="UTC", description=ZONE_HELP),
    OpenApiParameter("week_start", OpenApiTypes.STR, enum=list(WEEKDAYS), default="monday"),
]
PARAMETERS = [
    *TIMES,
    OpenApiParameter("aggregate", OpenApiTypes.STR, default="project", description=AGGREGATE_HELP),
    OpenApiParameter(
        "accumulate", OpenApiTypes.STR, enum=list(STEPS), default="all", description="true: all. false: day."
    ),
    FILTER,
    OpenApiParameter("idle", OpenApiTypes.STR, enum=list(IdleMode), description=IDLE_HELP),
    OpenApiParameter("idle_by", OpenApiTypes.STR, enum=list(IdleBy), default="cluster", description=IDLE_BY_HELP),
    OpenApiParameter(
        "idle_split", OpenApiTypes.STR, enum=list(IdleSplit), default="weighted", description=IDLE_SPLIT_HELP
    ),
    OpenApiParameter("cost", OpenApiTypes.STR, enum=list(METRICS), default="cumulative", description=COST_HELP),
    OpenApiParameter("compare", OpenApiTypes.STR, enum=["previous"], description=COMPARE_HELP),
]


def read(request: Request, now: datetime) -> CostQuery:
    """Return the question that the query asks; raise Invalid for what cannot be read."""
    chosen = calendar(request)
    return CostQuery(
        window=window(request, now, chosen),
        keys=tuple(query_values(request, "aggregate") or ["project"]),
        where=filter_grammar.parse(query_value(request, "filter")),
        step=_one_of(STEPS, request, "accumulate", "all"),
        calendar=chosen,
        metric=_one_of(METRICS, request, "cost", "cumulative"),
        idle=_idle_view(request),
        is_compared=_one_of(COMPARED, request, "compare", ""),
    )


def calendar(request: Request) -> Calendar:
    """Return the calendar that the query chooses."""
    first = _one_of(WEEKDAYS, request, "week_start", "monday")
    try:
        return Calendar(calendars.zone(query_value(request, "timezone", "UTC")), first)
    except ValueError as error:
        raise Invalid({"timezone": [f"{error}. Use a name such as Europe/Berlin, or UTC."]}) from error


def window(request: Request, now: datetime, calendar: Calendar) -> Window:
    """Return the window that the query chooses; the + of an offset (+02:00) may arrive as a space."""
    return windows.parse(query_value(request, "window", "7d").replace(" ", "+"), now, calendar)


def _idle_view(request: Request) -> IdleView | None:
    """Return the view of idle that the query chooses; None without one."""
    mode = query_choice(request, "idle", IdleMode.SEPARATE) if "idle" in request.query_params else None
    for name in ("idle_by", "idle_split"):
        if name in request.query_params and mode != IdleMode.SHARE:
            raise Invalid({name: ["It goes with idle=share."]})
    by = query_choice(request, "idle_by", IdleBy.CLUSTER)
    split = query_choice(request, "idle_split", IdleSplit.WEIGHTED)
    return None if mode is None else IdleView(mode, by, split)


def _one_of(choices: Mapping[str, T], request: Request, name: str, default: str) -> T:
    value = query_value(request, name, default)
    if value not in choices:
        raise Invalid({name: [f"Use one of {', '.join(filter(None, choices))}."]})
    return choices[value]
