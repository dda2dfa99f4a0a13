"""Prices of GPU-hours. A price never changes; a new one replaces it from its start."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import AdminScope, current_user
from portal.api.http.idempotency import KEY, idempotent, stated
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Amount, Body, Text, Timestamp, query_values, read
from portal.api.schemas.problem_output import refusals
from quotas.costs import pricing, selectors, services
from quotas.costs.models import Price

FLAVOR = OpenApiParameter("flavor", OpenApiTypes.STR, description="Several with commas.")


class PriceOut(serializers.Serializer):
    flavor = serializers.CharField()
    valid_from = serializers.DateTimeField()
    per_gpu_hour = serializers.CharField(help_text="Decimal.")
    currency = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name, not the option


class NewPrice(Body):
    flavor = Text(max_length=63)
    per_gpu_hour = Amount(max_digits=20, decimal_places=services.DECIMALS)
    currency = Text(required=False, max_length=3, help_text="Default: the currency of all prices.")
    valid_from = Timestamp(required=False, allow_null=True, help_text="Default: now.")
    source = Text(default="", allow_blank=True, max_length=200)  # type: ignore[assignment]


def _meaning(values: dict[str, Any]) -> dict[str, Any]:
    return {"currency": selectors.currency(), **stated(values)}


@extend_schema(methods=["GET"], parameters=[FLAVOR], responses=page_schema(PriceOut))
@extend_schema(
    methods=["POST"],
    summary="Set a price",
    parameters=[KEY],
    request=NewPrice,
    responses={201: PriceOut, **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewPrice, _meaning)
def prices(request: Request) -> Response:
    """List all prices, latest first; `?flavor=` filters by flavor. POST sets one from now on or later (operators)."""
    if request.method == "GET":
        rows = Price.objects.select_related("flavor")
        if flavors := query_values(request, "flavor"):
            rows = rows.filter(flavor__name__in=flavors)
        return page(request, rows, _render, "-valid_from", "-id")
    values = read(NewPrice, request)
    price = pricing.set_price(
        current_user(request),
        values["flavor"],
        values["per_gpu_hour"],
        values.get("currency") or "",
        values.get("valid_from"),
        values["source"],
    )
    return Response(_render([price])[0], status=201)


def _render(rows: list[Price]) -> list[dict[str, Any]]:
    return [
        {
            "flavor": row.flavor.name,
            "valid_from": row.valid_from,
            "per_gpu_hour": f"{row.per_gpu_hour.normalize():f}",
            "currency": row.currency,
            "source": row.source,
        }
        for row in rows
    ]
