"""The hours of the ledger whose balance was checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.schemas import cost_query
from portal.api.schemas.outputs import INLINE, documents, output_of
from portal.core import clock
from quotas.costs.rating import Window
from quotas.metering import ledger_starts, proofs
from quotas.metering.balance import Failure
from quotas.metering.hours import HOUR
from quotas.metering.models import BalanceProof

UNKNOWN_HELP = "null: the hour begins before capacity is recorded."


class CheckedHour(NamedTuple):
    """An hour that was checked, and since when the capacity of its cluster is recorded; None: not yet."""

    row: BalanceProof
    since: datetime | None


def _known(name: str) -> Callable[[CheckedHour], Decimal | None]:
    """Return what reads an amount; it is None of an hour that begins before capacity is recorded."""
    return lambda hour: getattr(hour.row, name) if hour.since is not None and hour.since <= hour.row.hour else None


@dataclass(frozen=True)
class ProofRow:
    window: Annotated[Window, lambda row: Window(row.hour, row.hour + HOUR)]
    cluster: Annotated[str, attrgetter("cluster_id")]
    checked_at: datetime
    balanced: bool
    accounts: Annotated[int, "GPUs, and resources of flavors, that were checked."]
    held: Decimal
    failures: Annotated[
        Sequence[Mapping[str, Any]], f"At most {BalanceProof.MAX_FAILURES}.", partial(output_of(Failure), many=True)
    ]
    failure_count: int


@dataclass(frozen=True)
class ProofOut:
    row: Annotated[ProofRow, INLINE]
    capacity_recorded_since: Annotated[datetime | None, "Of the cluster; null: not yet.", attrgetter("since")]
    capacity_gpu_hours: Annotated[
        Decimal | None,
        f"The sum of the six parts, if the hour is balanced. {UNKNOWN_HELP}",
        _known("capacity_gpu_hours"),
    ]
    unmanaged: Annotated[Decimal | None, UNKNOWN_HELP, _known("unmanaged")]
    unavailable: Annotated[Decimal | None, UNKNOWN_HELP, _known("unavailable")]
    stranded: Annotated[Decimal | None, UNKNOWN_HELP, _known("stranded")]
    idle: Annotated[Decimal | None, UNKNOWN_HELP, _known("idle")]
    variance: Annotated[
        Decimal | None, f"Negative if more is charged than there is. {UNKNOWN_HELP}", _known("variance")
    ]


@extend_schema(parameters=cost_query.TIMES, responses=page_schema(output_of(ProofOut)))
@api_view(["GET"])
def proof(request: Request) -> Response:
    """List the hours that were checked, newest first: their GPU-hours, and the rows that do not add up. For operators
    and auditors.
    """
    window = cost_query.window(request, clock.now(), cost_query.calendar(request))
    rows = proofs.in_window(current_user(request), window.start, window.end)
    since = ledger_starts.capacity_recorded_since()

    def render(found: list[BalanceProof]) -> list[dict[str, Any]]:
        return documents((CheckedHour(row, since.get(row.cluster_id)) for row in found), ProofOut)

    return page(request, rows, render, "-hour", "cluster_id")


urlpatterns = [
    path("costs/proof", proof),
]
