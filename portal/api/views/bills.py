"""Bills of clusters by month, and fixed costs that all share. For platform staff."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import AdminScope, current_user
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Amount, Body, Choice, List, Text, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.api.views.withdrawals import dated, in_currency
from portal.core.errors import NotVisible
from portal.core.money import PlainDecimal
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import bills as services
from quotas.costs.models import Bill, SharedCost

MONTH_HELP = "Such as 2026-11, UTC."


def _month(row: Bill | SharedCost) -> str:
    return f"{row.month:%Y-%m}"


@dataclass(frozen=True)
class BillOut:
    id: int
    cluster: Annotated[str, attrgetter("cluster_id")]
    month: Annotated[str, MONTH_HELP, _month]
    amount: Annotated[PlainDecimal, "Decimal."]
    currency: str
    source: str
    recorded_at: Annotated[datetime, "Of several for a month the newest counts."]


class NewBill(Body):
    cluster = Text(max_length=63)
    month = Text(max_length=7, help_text=f"One that has ended. {MONTH_HELP}")
    amount = Amount(max_digits=20, decimal_places=services.PLACES)
    currency = Text(required=False, max_length=3, help_text="Default: the currency of all prices.")
    source = Text(default="", allow_blank=True, max_length=200)  # type: ignore[assignment]


@dataclass(frozen=True)
class SharedCostOut:
    id: Annotated[int, "By which it is withdrawn while it has not begun."]
    name: str
    cluster: Annotated[str | None, "null: all.", attrgetter("cluster_id")]
    month: Annotated[str, f"The first. {MONTH_HELP}", _month]
    amount: Annotated[PlainDecimal, "Decimal, of a month."]
    currency: str
    split: SharedCost.Split
    teams: Annotated[Sequence[str], "Between which it is split evenly."]
    source: str


class NewSharedCost(Body):
    name = Text(max_length=services.MAX_NAME, help_text="A later one of the same name replaces it; 0 ends it.")
    cluster = Text(required=False, max_length=63, help_text="Cluster whose GPUs share the cost; default: all clusters.")
    month = Text(max_length=7, help_text=f"The first. {MONTH_HELP}")
    amount = Amount(max_digits=20, decimal_places=services.PLACES, help_text="Of a month.")
    currency = Text(required=False, max_length=3, help_text="Default: the currency of all prices.")
    split = Choice(choices=SharedCost.Split.values, help_text="weighted: by GPU cost. even: between teams.")
    teams = List(child=Text(max_length=40), required=False, help_text="With even; default: all that there are now.")
    source = Text(default="", allow_blank=True, max_length=200)  # type: ignore[assignment]


@extend_schema(methods=["GET"], responses=page_schema(output_of(BillOut)))
@extend_schema(
    methods=["POST"], summary="Enter a bill", parameters=[KEY], request=NewBill, responses={201: output_of(BillOut)}
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewBill, in_currency)
def bills(request: Request) -> Response:
    """List the bills of clusters, newest month first. POST enters one of a month that has ended (operators): what it
    differs from what the cluster's capacity cost is `adjustment` of `/costs`.
    """
    user = current_user(request)
    if request.method == "GET":
        return page(
            request, access.for_platform(user, Bill.objects.all()), partial(documents, cls=BillOut), "-month", "-id"
        )
    values = read(NewBill, request)
    row = services.enter_bill(
        user,
        values["cluster"],
        services.month_of(values["month"]),
        values["amount"],
        values.get("currency") or "",
        values["source"],
    )
    return Response(document(row, BillOut), status=201)


@extend_schema(responses=output_of(BillOut))
@api_view(["GET"])
def bill(request: Request, bill_id: int) -> Response:
    """Return a bill. It stays as it was entered; another one for its month replaces it."""
    row = access.for_platform(current_user(request), Bill.objects.filter(pk=bill_id)).first()
    if row is None:
        raise NotVisible(f"The bill {bill_id}")
    return Response(document(row, BillOut))


@extend_schema(methods=["GET"], responses=page_schema(output_of(SharedCostOut)))
@extend_schema(
    methods=["POST"],
    summary="Set a fixed cost",
    parameters=[KEY],
    request=NewSharedCost,
    responses={201: output_of(SharedCostOut), **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewSharedCost, in_currency)
def shared_costs(request: Request) -> Response:
    """List the fixed costs of each month that all share, such as network or support, latest first. POST sets one from
    this month on or later (operators): it is `shared_cost` of `/costs`.
    """
    user = current_user(request)
    if request.method == "GET":
        return page(request, _shared_costs(user), partial(documents, cls=SharedCostOut), "-month", "-id")
    values = read(NewSharedCost, request)
    row = services.set_shared_cost(
        user,
        values["name"],
        services.month_of(values["month"]),
        values["amount"],
        values["split"],
        cluster=values.get("cluster", ""),
        teams=values.get("teams", ()),
        currency=values.get("currency") or "",
        source=values["source"],
    )
    return Response(document(row, SharedCostOut), status=201)


def _shared_costs(user: User) -> QuerySet[SharedCost]:
    return access.for_platform(user, SharedCost.objects.all())


shared_cost = dated("fixed-cost", SharedCostOut, _shared_costs)


urlpatterns = [
    path("bills", bills),
    path("bills/<int:bill_id>", bill),
    path("shared-costs", shared_costs),
    path("shared-costs/<int:dated_id>", shared_cost),
]
