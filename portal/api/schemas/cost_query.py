"""The query parameters of costs, which have OpenCost's words."""

from datetime import datetime

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.api.http.strict import query_value
from portal.core.errors import Invalid
from quotas.costs import calendar as calendars
from quotas.costs import windows
from quotas.costs.calendar import Calendar, Weekday
from quotas.costs.rating import Window
from quotas.costs.steps import Step

WEEKDAYS = {day.name.lower(): day for day in Weekday}
STEPS = {"true": Step.ALL, "false": Step.DAY, **{step.value: step for step in Step}}
ZONE_HELP = "Of the IANA database, such as Europe/Berlin: days, weeks and months are its own, with 23 and 25 hours too."
TIMES = [
    OpenApiParameter("window", OpenApiTypes.STR, default="7d", description=windows.WORKS),
    OpenApiParameter("timezone", OpenApiTypes.STR, default="UTC", description=ZONE_HELP),
    OpenApiParameter("week_start", OpenApiTypes.STR, enum=list(WEEKDAYS), default="monday"),
]
ACCUMULATE = OpenApiParameter(
    "accumulate", OpenApiTypes.STR, enum=list(STEPS), default="all", description="true: all. false: day."
)


def calendar(request: Request) -> Calendar:
    """Return the calendar that the query chooses."""
    name, first = query_value(request, "timezone", "UTC"), query_value(request, "week_start", "monday")
    if first not in WEEKDAYS:
        raise Invalid({"week_start": [f"Use one of {', '.join(WEEKDAYS)}."]})
    try:
        return Calendar(calendars.zone(name), WEEKDAYS[first])
    except ValueError as error:
        raise Invalid({"timezone": [f"{error}. Use a name such as Europe/Berlin, or UTC."]}) from error


def window(request: Request, now: datetime, calendar: Calendar) -> Window:
    """Return the window that the query chooses; the + of an offset (+02:00) may arrive as a space."""
    return windows.parse(query_value(request, "window", "7d").replace(" ", "+"), now, calendar)


def step(request: Request) -> Step:
    """Return how long the steps are that have rows of their own."""
    name = query_value(request, "accumulate", "all").lower()
    if name not in STEPS:
        raise Invalid({"accumulate": [f"Use one of {', '.join(STEPS)}."]})
    return STEPS[name]
