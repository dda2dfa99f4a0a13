"""The query parameters of costs, and those of OpenCost's clients."""

from datetime import datetime

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.api.http.auth import current_user
from quotas.costs import columns, cost_parameters, opencost_parameters, windows
from quotas.costs.calendar import Calendar
from quotas.costs.cost_parameters import METRICS, STEPS, WEEKDAYS
from quotas.costs.opencost_parameters import CHOICES, REFUSED, TAKEN
from quotas.costs.questions import IdleBy, IdleMode, IdleSplit, Question, asked_by
from quotas.costs.rating import Window

ZONE_HELP = "Of the IANA database, such as Europe/Berlin: days, weeks and months are its own, with 23 and 25 hours too."
AGGREGATE_HELP = f"Of {', '.join(columns.KEYS)} and label:<key>, several with commas; or all."
IDLE_HELP = (
    "separate: in rows of its own. share: in the rows of who held something, by `idle_by` and `idle_split`. "
    "owner: in the rows of the teams and departments whose unused quota it is. hide: without what nobody is charged "
    "for. By default separate for platform staff, hide for others, who may also use owner."
)
IDLE_BY_HELP = "With idle=share: between whom. node: where Kubernetes names no GPU, the flavor."
IDLE_SPLIT_HELP = "With idle=share: in proportion to cost, or evenly between the rows."
FILTER_HELP = 'In OpenCost\'s grammar: team:"vision","language"+(kind!:"shared"|label[stage]:"prod").'
COST_HELP = "Money: of the window, or by hour, day or month (730 hours) at the pace of the time until now."
COMPARE_HELP = "previous: beside the window before, as long as what has passed of this one."
FILTER = OpenApiParameter("filter", OpenApiTypes.STR, description=FILTER_HELP)
TIMEZONE = OpenApiParameter("timezone", OpenApiTypes.STR, default="UTC", description=ZONE_HELP)
TIMES = [
    OpenApiParameter("window", OpenApiTypes.STR, default="7d", description=windows.WORKS),
    TIMEZONE,
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
    *(
        OpenApiParameter(name, OpenApiTypes.STR, enum=CHOICES.get(name), description=f"As OpenCost. {help_}")
        for name, help_ in TAKEN.items()
    ),
    *(OpenApiParameter(name, OpenApiTypes.STR, exclude=True) for name in REFUSED),  # in words of their own
]


def read(request: Request, now: datetime) -> Question:
    """Return the question that the query asks, of what the caller may see; raise Invalid for what cannot be read, and
    Forbidden as `asked_by`.
    """
    return asked_by(current_user(request), opencost_parameters.read(request.query_params, now))


def calendar(request: Request) -> Calendar:
    """Return the calendar that the query chooses."""
    return cost_parameters.calendar(request.query_params)


def window(request: Request, now: datetime, calendar: Calendar) -> Window:
    """Return the window that the query chooses."""
    return cost_parameters.window(request.query_params, now, calendar)
