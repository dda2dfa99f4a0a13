"""The forecast of costs in REST: its query parameters, and its answer."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from allocations.requests.cost_forecast import SCOPE, ForecastAmounts
from portal.api.http.strict import query_value
from portal.api.schemas.cost_query import FILTER
from portal.api.schemas.outputs import INLINE, output_of
from portal.core import rfc3339
from portal.core.errors import Invalid
from portal.core.money import HoursOrZero
from quotas.costs.calendar import ONE_DAY, Calendar, month_of, months_later
from quotas.costs.cost_rows import UNPRICED_HELP
from quotas.costs.rating import Window
from quotas.metering.hours import DAY

WINDOWS = ("month", "week")
MAX_DAYS = 366
BOUND_HELP = "RFC 3339 with its offset, or a date of the time zone. Give both from and until, in place of window."
PARAMETERS = [
    OpenApiParameter("window", OpenApiTypes.STR, enum=WINDOWS, default="month", description="The present one."),
    OpenApiParameter("from", OpenApiTypes.STR, description=f"Not in the future. {BOUND_HELP}"),
    OpenApiParameter("until", OpenApiTypes.STR, description=f"In the future. {BOUND_HELP}"),
    OpenApiParameter(
        "timezone", OpenApiTypes.STR, default="UTC", description="Of the IANA database: days and weekdays are its own."
    ),
    FILTER,
    *(OpenApiParameter(key, OpenApiTypes.STR, description="Only what it uses, of what you may see.") for key in SCOPE),
]


@dataclass(frozen=True)
class CostForecastOut:
    window: Annotated[Window, partial(output_of(Window, "PeriodOut"))]
    as_of: Annotated[datetime, "What is before is posted, and the rest is forecast."]
    timezone: str
    currency: str
    amounts: Annotated[ForecastAmounts, INLINE]
    reason: Annotated[str | None, "Why it is unknown; null if it is known.", attrgetter("unknown")]
    history_days: Annotated[int, "Past days that count, 56 at most."]
    unpriced_gpu_hours: Annotated[
        HoursOrZero,
        f"{UNPRICED_HELP} Of posted and committed.",
        lambda found: (found.rated + found.committed).unpriced_gpu_hours,
    ]
    is_complete: Annotated[bool, "false: something that was, is or is expected to be used has no price."]


def window(request: Request, now: datetime, calendar: Calendar) -> Window:
    """Return the window in the query; raise Invalid for one in which ``now`` is not."""
    given = [name for name in ("from", "until") if name in request.query_params]
    if not given:
        return _named(query_value(request, "window", "month"), now, calendar)
    if "window" in request.query_params:
        raise Invalid({"window": ["Give window, or from and until."]})
    for name in ("from", "until"):
        if name not in given:
            raise Invalid({name: ["Give both from and until."]})
    start, end = (_bound(request, name, calendar) for name in ("from", "until"))
    if start > now:
        raise Invalid({"from": ["It is in the future. Give now or an earlier time: what is posted since counts too."]})
    if end <= now:
        raise Invalid({"until": ["It is not in the future: there is nothing left to forecast."]})
    if end - start > MAX_DAYS * DAY:
        raise Invalid({"until": [f"It is more than {MAX_DAYS} days after from."]})
    return Window(start, end)


def _named(name: str, now: datetime, calendar: Calendar) -> Window:
    today = calendar.day_of(now)
    match name:
        case "month":
            start = month_of(today)
            return Window(calendar.start_of(start), calendar.start_of(months_later(start, 1)))
        case "week":
            start = calendar.week_of(today)
            return Window(calendar.start_of(start), calendar.start_of(start + 7 * ONE_DAY))
    raise Invalid({"window": [f"Use one of {', '.join(WINDOWS)}, or from and until."]})


def _bound(request: Request, name: str, calendar: Calendar) -> datetime:
    """Return a time, or the start of a date; the + of an offset (+02:00) may arrive as a space."""
    text = query_value(request, name).replace(" ", "+")
    try:
        return calendar.start_of(rfc3339.day(text)) if len(text) == len("2026-11-30") else rfc3339.time(text)
    except (OverflowError, ValueError) as error:
        raise Invalid({name: ["Give a time as 2026-11-30T18:00:00Z, or a date as 2026-11-30."]}) from error
