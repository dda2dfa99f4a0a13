"""What could be saved."""

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import row_pages
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.strict import query_whole
from portal.api.schemas import cost_query, savings_output
from portal.api.schemas.outputs import document, documents
from quotas.costs.questions import Question, asked_by
from quotas.costs.savings import IDLE_HOURS, MAX_IDLE_HOURS, possible_savings


@extend_schema(
    parameters=[
        *cost_query.TIMES,
        OpenApiParameter(
            "idle_hours",
            OpenApiTypes.INT,
            default=IDLE_HOURS,
            description=f"A hold is idle after so many hours without any pod, at most {MAX_IDLE_HOURS}.",
        ),
        OpenApiParameter(
            "limit",
            OpenApiTypes.INT,
            default=row_pages.PAGE_SIZE,
            description=f"Rows, at most {row_pages.MAX_PAGE_SIZE}.",
        ),
    ],
    responses=savings_output.SavingPage,
)
@api_view(["GET"])
def savings(request: Request) -> Response:
    """List what could be saved of the caller's teams, by kind, highest cost first; for operators and auditors of all
    teams and of the fleet. The kinds do not overlap. Nights are from 20:00 to 06:00 in `timezone`.
    """
    place = row_pages.place_of(request)
    calendar = cost_query.calendar(request)
    window = cost_query.window(request, place.now, calendar)
    hours = query_whole(request, "idle_hours", IDLE_HOURS, MAX_IDLE_HOURS)
    question = Question(window, place.now, calendar=calendar)
    found = possible_savings(asked_by(current_user(request), question), hours)
    page = row_pages.page_of(request, found.found, place)
    page["results"] = documents(page["results"], savings_output.SavingOut)
    return Response({**page, **document(found, savings_output.SavingSums)})


urlpatterns = [
    path("costs/savings", savings),
]
