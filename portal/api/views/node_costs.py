"""What nodes cost the platform, and by which term they are paid. For platform staff."""

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
from portal.api.http.strict import Amount, Body, Choice, Text, Timestamp, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.api.views.withdrawals import dated, in_currency
from portal.core.money import PlainDecimal
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import capacity_services, price_tables
from quotas.costs.amounts import DECIMALS
from quotas.costs.models import NodeCost, NodeTerm
from quotas.costs.node_split import PRESETS
from quotas.costs.node_terms import Term

SPLIT_HELP = (
    f"{', '.join(PRESETS)}, or the weights of a CPU, a GiB of memory and a GPU as 0.9:0.1:9; "
    "what is not the GPUs' is node_rest."
)
TERMS = [term.value for term in Term]


@dataclass(frozen=True)
class NodeCostOut:
    id: Annotated[int, "By which it is withdrawn while it has not begun."]
    flavor: Annotated[str | None, lambda row: row.flavor and row.flavor.name]
    term: Annotated[str | None, lambda row: row.term or None]
    cluster: Annotated[str | None, lambda row: row.node and row.node.cluster_id]
    node: Annotated[str | None, lambda row: row.node and row.node.name]
    valid_from: datetime
    per: NodeCost.Per
    per_hour: Annotated[PlainDecimal, "Decimal."]
    split: Annotated[
        str | None,
        f"{SPLIT_HELP} null: per GPU.",
        lambda row: price_tables.split_of(row) if row.per == NodeCost.Per.NODE else None,
    ]
    currency: str
    source: str


class NewNodeCost(Body):
    exclusive = (("flavor", "node"),)
    flavor = Text(required=False, max_length=63, help_text="All its nodes with this term; else give a node.")
    term = Choice(required=False, choices=TERMS, help_text="With a flavor.")
    cluster = Text(required=False, max_length=63, help_text="With a node.")
    node = Text(required=False, max_length=253)
    per = Choice(choices=NodeCost.Per.values)
    per_hour = Amount(max_digits=20, decimal_places=DECIMALS)
    split = Text(required=False, max_length=80, help_text=f"With per node; default gpus. {SPLIT_HELP}")
    currency = Text(required=False, max_length=3, help_text="Default: the currency of all prices.")
    valid_from = Timestamp(required=False, allow_null=True, help_text="Default: now.")
    source = Text(default="", allow_blank=True, max_length=200)  # type: ignore[assignment]


@dataclass(frozen=True)
class NodeTermOut:
    id: Annotated[int, "By which it is withdrawn while it has not begun."]
    cluster: Annotated[str, attrgetter("node.cluster_id")]
    node: Annotated[str, attrgetter("node.name")]
    term: Term
    valid_from: datetime


class NewNodeTerm(Body):
    cluster = Text(max_length=63)
    node = Text(max_length=253)
    term = Choice(choices=TERMS)
    valid_from = Timestamp(required=False, allow_null=True, help_text="Default: now.")


@extend_schema(methods=["GET"], responses=page_schema(output_of(NodeCostOut)))
@extend_schema(
    methods=["POST"],
    summary="Set what nodes cost",
    parameters=[KEY],
    request=NewNodeCost,
    responses={201: output_of(NodeCostOut), **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewNodeCost, in_currency)
def node_costs(request: Request) -> Response:
    """List what an hour of nodes, or of their GPUs, costs the platform, latest first. POST sets it from now on or later
    (operators). Holders pay prices; the difference is `price_variance` of `/costs`.
    """
    user = current_user(request)
    if request.method == "GET":
        return page(request, _costs(user), partial(documents, cls=NodeCostOut), "-valid_from", "-id")
    values = read(NewNodeCost, request)
    subject = capacity_services.subject_named(
        user, *(values.get(name, "") for name in ("flavor", "term", "cluster", "node"))
    )
    row = capacity_services.set_node_cost(
        user,
        subject,
        values["per_hour"],
        values["per"],
        values.get("split", ""),
        values.get("currency") or "",
        values.get("valid_from"),
        values["source"],
    )
    return Response(document(row, NodeCostOut), status=201)


@extend_schema(methods=["GET"], responses=page_schema(output_of(NodeTermOut)))
@extend_schema(
    methods=["POST"],
    summary="Say by which term a node is paid",
    parameters=[KEY],
    request=NewNodeTerm,
    responses={201: output_of(NodeTermOut), **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewNodeTerm)
def node_terms(request: Request) -> Response:
    """List the terms that operators said of nodes, latest first; a label of the node prevails. POST says one from now
    on or later (operators).
    """
    user = current_user(request)
    if request.method == "GET":
        return page(request, _terms(user), partial(documents, cls=NodeTermOut), "-valid_from", "-id")
    values = read(NewNodeTerm, request)
    row = capacity_services.set_node_term(
        user, values["cluster"], values["node"], values["term"], values.get("valid_from")
    )
    return Response(document(row, NodeTermOut), status=201)


def _costs(user: User) -> QuerySet[NodeCost]:
    return access.for_platform(user, NodeCost.objects.select_related("flavor", "node"))


def _terms(user: User) -> QuerySet[NodeTerm]:
    return access.for_platform(user, NodeTerm.objects.select_related("node"))


node_cost = dated("node-cost", NodeCostOut, _costs)
node_term = dated("node-term", NodeTermOut, _terms)


urlpatterns = [
    path("node-costs", node_costs),
    path("node-costs/<int:dated_id>", node_cost),
    path("node-terms", node_terms),
    path("node-terms/<int:dated_id>", node_term),
]
