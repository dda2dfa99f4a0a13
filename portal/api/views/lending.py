"""Loans between teams: now, and over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.queues import lending
from allocations.queues.lending import Loan
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.strict import query_value
from portal.api.schemas.outputs import document, output_of
from portal.core import clock
from quotas.costs import windows


@dataclass(frozen=True)
class LendingOut:
    results: Sequence[Loan]


@extend_schema(
    parameters=[
        OpenApiParameter(
            "window", OpenApiTypes.STR, description=f"Unit-hours in it; without it what is now. {windows.WORKS}"
        )
    ],
    responses=output_of(LendingOut),
)
@api_view(["GET"])
def loans(request: Request) -> Response:
    """List who borrows how much from whom. Borrowed quota is attributed to the nearest department first: its own quota
    before its teams', and among the teams in proportion to what each leaves idle.
    """
    user, text = current_user(request), query_value(request, "window").replace(" ", "+")
    found = lending.loans_in(user, windows.parse(text, clock.now())) if text else lending.current_loans(user)
    return Response(document(LendingOut(found)))


urlpatterns = [
    path("lending", loans),
]
