"""Prices, node costs, node terms and fixed costs by id: one is returned, or withdrawn while it has not begun."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import AdminScope, current_user
from portal.api.http.idempotency import stated
from portal.api.http.operations import api_view
from portal.api.schemas.outputs import document, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.errors import NotVisible
from portal.tenants.models import User
from quotas.costs import selectors, withdrawals


def in_currency(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a body with an amount means: without a currency, that of all prices."""
    return {"currency": selectors.currency(), **stated(values)}


def dated(kind: str, described: type, visible: Callable[[User], QuerySet[Any]]) -> Any:
    """Return the view of one row of a kind of `withdrawals.KINDS`, of those that are visible to a person."""
    noun = withdrawals.KINDS[kind].noun

    @extend_schema(methods=["GET"], summary=f"Return a {noun}", responses=output_of(described))
    @extend_schema(
        methods=["DELETE"], summary="Withdraw what has not begun", responses={204: None, **refusals("wrong_phase")}
    )
    @api_view(["GET", "DELETE"])
    @permission_classes([AdminScope])
    def view(request: Request, dated_id: int) -> HttpResponse:
        """Return one of the list. DELETE withdraws it while it has not begun (operators): what counts before it goes
        on, and another one may begin then. Afterwards it is refused, since it may have been charged.
        """
        user = current_user(request)
        if request.method == "DELETE":
            withdrawals.withdraw(user, kind, dated_id)
            return Response(status=status.HTTP_204_NO_CONTENT)
        row = visible(user).filter(pk=dated_id).first()
        if row is None:
            raise NotVisible(f"The {noun} {dated_id}")
        return Response(document(row, described))

    return view
