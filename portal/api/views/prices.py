"""Prices of GPU-hours and slice-hours. A price never changes; a new one replaces it from its start."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import AdminScope, current_user
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Amount, Body, Boolean, Text, Timestamp, query_values, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.api.views.withdrawals import dated, in_currency
from portal.core.errors import Invalid
from portal.core.money import PlainDecimal
from portal.tenants.models import User
from quotas.costs import price_tables, public_prices, services
from quotas.costs.amounts import DECIMALS
from quotas.costs.models import Price
from quotas.costs.node_terms import Term
from quotas.costs.price_tables import ImportedRow

FLAVOR = OpenApiParameter("flavor", OpenApiTypes.STR, description="Several with commas.")
MAX_TABLE = 1_000_000


@dataclass(frozen=True)
class PriceOut:
    id: Annotated[int, "By which it is withdrawn while it has not begun."]
    flavor: Annotated[str, attrgetter("flavor.name")]
    offering: Annotated[str | None, "null: of the flavor's GPUs.", lambda row: row.offering and row.offering.key]
    valid_from: datetime
    per_gpu_hour: Annotated[PlainDecimal | None, "Decimal; null of an offering."]
    per_slice_hour: Annotated[
        PlainDecimal | None, "Decimal, of an offering. null: from then on the price of its flavor."
    ]
    currency: str
    source: str


class NewPrice(Body):
    exclusive = (("flavor", "offering"),)
    flavor = Text(required=False, max_length=63)
    offering = Text(required=False, max_length=127, help_text="Instead of flavor: its list price, for each slice.")
    per_gpu_hour = Amount(required=False, max_digits=20, decimal_places=DECIMALS, help_text="Of a flavor.")
    per_slice_hour = Amount(
        required=False,
        allow_null=True,
        max_digits=20,
        decimal_places=DECIMALS,
        help_text="Of an offering. null: from then on the price of its flavor.",
    )
    currency = Text(required=False, max_length=3, help_text="Default: the currency of all prices.")
    valid_from = Timestamp(required=False, allow_null=True, help_text="Default: now.")
    source = Text(default="", allow_blank=True, max_length=200)  # type: ignore[assignment]


@dataclass(frozen=True)
class PublicPriceOut:
    provider: str
    instance: str
    gpu: str
    gpus: int
    region: Annotated[str, "Empty: not stated."]
    term: Term
    per_node_hour: Annotated[Decimal, "Decimal."]
    per_gpu_hour: Annotated[Decimal, "Decimal: the same for each of its GPUs."]
    currency: str
    as_of: Annotated[date, "The day on which the provider asked this."]
    source: str


@dataclass(frozen=True)
class PublicPriceListOut:
    results: Sequence[PublicPriceOut]


class PriceTable(Body):
    csv = Text(max_length=MAX_TABLE, help_text=f"Columns: {', '.join(price_tables.COLUMNS)}.")
    dry_run = Boolean(default=False, help_text="Say what would be imported, and import nothing.")


@dataclass(frozen=True)
class ImportOut:
    results: Annotated[Sequence[ImportedRow], attrgetter("rows")]
    errors: Annotated[int, "Rows that cannot be imported; with any, none is."]
    applied: Annotated[bool, attrgetter("is_applied")]


@extend_schema(methods=["GET"], parameters=[FLAVOR], responses=page_schema(output_of(PriceOut)))
@extend_schema(
    methods=["POST"],
    summary="Set a price",
    parameters=[KEY],
    request=NewPrice,
    responses={201: output_of(PriceOut), **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewPrice, in_currency)
def prices(request: Request) -> Response:
    """List all prices, latest first; `?flavor=` filters by flavor. POST sets one from now on or later (operators): of a
    flavor's GPUs, or the list price of an offering's slices.
    """
    if request.method == "GET":
        rows = _visible(current_user(request))
        if flavors := query_values(request, "flavor"):
            rows = rows.filter(flavor__name__in=flavors)
        return page(request, rows, partial(documents, cls=PriceOut), "-valid_from", "-id")
    price = _set(request, read(NewPrice, request))
    return Response(document(price, PriceOut), status=201)


@extend_schema(responses=output_of(PublicPriceListOut))
@api_view(["GET"])
def public(request: Request) -> Response:
    """List what providers asked for an hour of common instances, each with its day and source. Nothing applies them."""
    return Response({"results": documents(public_prices.listed(), PublicPriceOut)})


@extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR})
@api_view(["GET"])
def export(request: Request) -> HttpResponse:
    """Return all prices, costs and terms of nodes as CSV, which `POST /prices/import` reads. For operators and
    auditors.
    """
    table = price_tables.export_table(current_user(request))
    headers = {"Content-Disposition": 'attachment; filename="prices.csv"', "Cache-Control": "no-store"}
    return HttpResponse(table, content_type="text/csv; charset=utf-8", headers=headers)


@extend_schema(request=PriceTable, responses=output_of(ImportOut))
@api_view(["POST"])
@permission_classes([AdminScope])
def import_(request: Request) -> Response:
    """Import prices, costs and terms of nodes from CSV, all rows or none (operators). With `dry_run` it says what would
    be imported.
    """
    values = read(PriceTable, request)
    done = price_tables.import_table(current_user(request), values["csv"], dry_run=values["dry_run"])
    return Response(document(done, ImportOut))


def _visible(user: User) -> QuerySet[Price]:
    """Return all prices, which everybody sees."""
    return Price.objects.select_related("flavor", "offering")


def _set(request: Request, values: dict[str, Any]) -> Price:
    """Set the price that a body says; raise Invalid for one that mixes both kinds."""
    user, common = current_user(request), (values.get("currency") or "", values.get("valid_from"), values["source"])
    is_slice = "offering" in values
    subject, amount = ("offering", "per_slice_hour") if is_slice else ("flavor", "per_gpu_hour")
    other = ({"offering", "per_slice_hour"} if not is_slice else {"flavor", "per_gpu_hour"}) & values.keys()
    errors = {name: ["Give a flavor and per_gpu_hour, or an offering and per_slice_hour."] for name in sorted(other)}
    errors |= {name: ["This field is required."] for name in (subject, amount) if name not in values}
    if errors:
        raise Invalid(errors)
    if is_slice:
        return services.set_slice_price(user, values[subject], values[amount], *common)
    return services.set_price(user, values[subject], values[amount], *common)


price = dated("price", PriceOut, _visible)


urlpatterns = [
    path("prices", prices),
    path("prices/export", export),
    path("prices/import", import_),
    path("prices/public", public),
    path("prices/<int:dated_id>", price),
]
