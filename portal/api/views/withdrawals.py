"""Withdraw prices, node costs, node terms and fixed costs that have not begun."""

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import AdminScope, current_user
from portal.api.http.operations import api_view
from portal.api.schemas.problem_output import refusals
from quotas.costs import withdrawals


@extend_schema(summary="Withdraw what has not begun", responses={204: None, **refusals("wrong_phase")})
@api_view(["DELETE"])
@permission_classes([AdminScope])
def withdraw(request: Request, dated_id: int, kind: str) -> Response:
    """Withdraw it while it has not begun (operators): what counts before it goes on, and another one may begin then.
    Afterwards it is refused, since it may have been charged.
    """
    withdrawals.withdraw(current_user(request), kind, dated_id)
    return Response(status=status.HTTP_204_NO_CONTENT)
