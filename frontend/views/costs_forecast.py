"""The forecast of a view of costs: a page, and for htmx the figure that the page of costs loads after it is shown. The
days that a forecast is made from take longer to read than the costs.
"""

from datetime import datetime

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.requests import cost_forecast
from allocations.requests.cost_forecast import CostForecast
from frontend.pages import PageRequest, page, show
from frontend.presenters.costs_address import address_of
from frontend.presenters.costs_tiles import forecast_tile
from portal.core import clock
from portal.tenants.models import User
from quotas.costs import cost_parameters
from quotas.costs.questions import Metric, Question
from quotas.costs.rating import Window

NONE_OF_RATE = "Available for the cost of the period, not for a rate."
NONE_OF_PAST = "Available for a period that has begun and has not ended."


@require_safe
@page
def forecast(request: PageRequest) -> HttpResponse:
    """Show what the period of a view will have cost. The address takes the parameters of the page of costs."""
    now, address = clock.now(), address_of(request.GET, timezone.get_current_timezone_name())
    question = cost_parameters.read(address.parameters(), now)
    found = _forecast(request.user, question)
    with timezone.override(question.calendar.zone):
        context = {"tile": forecast_tile(found), "window": question.window, "back": address.page()}
        return show(request, "frontend/costs_forecast.html", context, partial="part")


def is_forecast(window: Window, now: datetime) -> bool:
    """Return whether a period has a forecast: it has begun, and is not over."""
    return window.start <= now < window.end


def _forecast(user: User, question: Question) -> CostForecast | str:
    """Return the forecast, or why there is none. Raises Invalid for a filter by what is no key of costs."""
    visible = cost_forecast.visible(user, question, {})
    if question.metric is not Metric.CUMULATIVE:
        return NONE_OF_RATE
    if not is_forecast(question.window, question.now):
        return NONE_OF_PAST
    return cost_forecast.in_window(visible)


urlpatterns = [
    path("costs/forecast", forecast, name="costs-forecast"),
]
DOCS = "how-to/costs"
