"""Loans between teams: now, and over time."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.queues import lending
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.strict import query_value
from portal.api.schemas.decimal_text import DecimalText
from portal.core import clock, money
from quotas.costs import windows


class LoanOut(serializers.Serializer):
    pool = serializers.CharField()
    borrower = serializers.CharField(help_text="Slug of the team; empty if you may not see it.")
    lender = serializers.CharField(
        help_text="Slug of the team, or of the department that has the quota; empty if you may not see it."
    )
    amount = DecimalText(help_text="Decimal: units of the pool now, unit-hours in a window.")


class LendingOut(serializers.Serializer):
    results = LoanOut(many=True)


@extend_schema(
    parameters=[
        OpenApiParameter(
            "window", OpenApiTypes.STR, description=f"Unit-hours in it; without it what is now. {windows.WORKS}"
        )
    ],
    responses=LendingOut,
)
@api_view(["GET"])
def loans(request: Request) -> Response:
    """List who borrows how much from whom. Borrowed quota is attributed to the nearest department first: its own quota
    before its teams', and among the teams in proportion to what each leaves idle.
    """
    user, text = current_user(request), query_value(request, "window").replace(" ", "+")
    found = lending.loans_in(user, windows.parse(text, clock.now())) if text else lending.current_loans(user)
    return Response({"results": [document(loan) for loan in found]})


def document(loan: lending.Loan | lending.TeamBalance) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str) else money.text(value, money.HOURS_PLACES)
        for name, value in vars(loan).items()
    }


urlpatterns = [
    path("lending", loans),
]
