"""The forecast of costs in REST: its query parameters, and its answer."""

from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from allocations.requests.cost_forecast import SCOPE, CostForecast
from portal.api.http.strict import query_value
from portal.api.schemas.cost_output import UNPRICED_HELP
from portal.api.schemas.cost_query import FILTER
from portal.api.schemas.decimal_text import DecimalText
from portal.core import money, rfc3339
from portal.core.errors import Invalid
from quotas.costs.calendar import ONE_DAY, Calendar, month_of, months_later
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
SUM_HELP = "null if it is unknown; `reason` says why."


class PeriodOut(serializers.Serializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class CostForecastOut(serializers.Serializer):
    window = PeriodOut()
    as_of = serializers.DateTimeField(help_text="What is before is posted, and the rest is forecast.")
    timezone = serializers.CharField()
    currency = serializers.CharField()
    posted = DecimalText(
        allow_null=True,
        help_text="The total of /costs from the start of the window until as_of, or null as there.",
    )
    committed = DecimalText(
        allow_null=True, help_text="What runs now, until its end or that of the window; null if none of it has a price."
    )
    shared_cost = DecimalText(
        allow_null=True, help_text="Fixed costs of the rest of the window, at the pace of the present month until now."
    )
    expected = DecimalText(allow_null=True, help_text=f"New use, beyond what is committed. {SUM_HELP}")
    total = DecimalText(allow_null=True, help_text=f"The sum of the four. {SUM_HELP}")
    low = DecimalText(allow_null=True, help_text=f"By past errors the total is lower in 10 %. {SUM_HELP}")
    high = DecimalText(allow_null=True, help_text=f"By past errors the total is higher in 10 %. {SUM_HELP}")
    reason = serializers.CharField(allow_null=True, help_text="Why it is unknown; null if it is known.")
    history_days = serializers.IntegerField(help_text="Past days that count, 56 at most.")
    unpriced_gpu_hours = DecimalText(help_text=f"{UNPRICED_HELP} Of posted and committed.")
    is_complete = serializers.BooleanField(
        help_text="false: something that was, is or is expected to be used has no price."
    )


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


def document(found: CostForecast, timezone: str) -> dict[str, Any]:
    """Return the answer."""
    return {
        "window": {"start": found.window.start, "end": found.window.end},
        "as_of": found.as_of,
        "timezone": timezone,
        "currency": found.currency,
        **vars(found.amounts()),
        "reason": found.unknown,
        "history_days": found.history_days,
        "unpriced_gpu_hours": money.hours_text((found.rated + found.committed).unpriced_gpu_hours),
        "is_complete": found.is_complete,
    }


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
