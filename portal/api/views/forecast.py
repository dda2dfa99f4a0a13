"""The forecast of costs."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.requests import cost_forecast
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.strict import query_value
from portal.api.schemas import cost_query, forecast_output
from portal.api.schemas.outputs import document, output_of
from portal.api.schemas.problem_output import refusals
from portal.core import clock
from quotas.costs import filter_grammar
from quotas.costs.questions import Question


@extend_schema(
    parameters=forecast_output.PARAMETERS,
    responses={200: output_of(forecast_output.CostForecastOut), **refusals("not_found")},
)
@api_view(["GET"])
def forecast(request: Request) -> Response:
    """Forecast what a period will have cost of what the caller may see: what is posted, what running holds are
    committed to, what such days usually cost beyond that, and fixed costs, with the range in which eight of ten totals
    are by past errors. Amounts are decimal strings.
    """
    now, calendar = clock.now(), cost_query.calendar(request)
    window = forecast_output.window(request, now, calendar)
    where = filter_grammar.parse(query_value(request, "filter"))
    named = {key: query_value(request, key) for key in cost_forecast.SCOPE}
    question = Question(window, now, where=where, calendar=calendar)
    found = cost_forecast.in_window(cost_forecast.visible(current_user(request), question, named))
    return Response(document(found, forecast_output.CostForecastOut))


urlpatterns = [
    path("costs/forecast", forecast),
]
