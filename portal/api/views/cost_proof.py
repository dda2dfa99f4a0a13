"""The hours of the ledger whose balance was checked."""

from datetime import datetime
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.schemas import cost_query
from portal.api.schemas.cost_report import WindowOut
from portal.api.schemas.decimal_text import DecimalText
from portal.core import clock
from quotas.metering import ledger_starts, proofs
from quotas.metering.balance import Check
from quotas.metering.hours import HOUR
from quotas.metering.models import BalanceProof

UNKNOWN_HELP = "null: the hour begins before capacity is recorded."


class FailureOut(serializers.Serializer):
    check = serializers.ChoiceField(choices=[each.value for each in Check])
    cluster = serializers.CharField()
    flavor = serializers.CharField()
    node = serializers.CharField(help_text="Empty where GPUs are counted over the nodes of a flavor.")
    name = serializers.CharField(help_text="Of the GPU, the resource, the slot or the Job.")
    expected = serializers.CharField()
    found = serializers.CharField()
    message = serializers.CharField()


class ProofOut(serializers.Serializer):
    window = WindowOut()
    cluster = serializers.CharField()
    checked_at = serializers.DateTimeField()
    balanced = serializers.BooleanField()
    accounts = serializers.IntegerField(help_text="GPUs, and resources of flavors, that were checked.")
    capacity_recorded_since = serializers.DateTimeField(allow_null=True, help_text="Of the cluster; null: not yet.")
    capacity_gpu_hours = DecimalText(
        allow_null=True, help_text=f"The sum of the six parts, if the hour is balanced. {UNKNOWN_HELP}"
    )
    held = DecimalText()
    unmanaged = DecimalText(allow_null=True, help_text=UNKNOWN_HELP)
    unavailable = DecimalText(allow_null=True, help_text=UNKNOWN_HELP)
    stranded = DecimalText(allow_null=True, help_text=UNKNOWN_HELP)
    idle = DecimalText(allow_null=True, help_text=UNKNOWN_HELP)
    variance = DecimalText(allow_null=True, help_text=f"Negative if more is charged than there is. {UNKNOWN_HELP}")
    failures = FailureOut(many=True, help_text=f"At most {BalanceProof.MAX_FAILURES}.")
    failure_count = serializers.IntegerField()


@extend_schema(parameters=cost_query.TIMES, responses=page_schema(ProofOut))
@api_view(["GET"])
def proof(request: Request) -> Response:
    """List the hours that were checked, newest first: their GPU-hours, and the rows that do not add up. For operators
    and auditors.
    """
    window = cost_query.window(request, clock.now(), cost_query.calendar(request))
    rows = proofs.in_window(current_user(request), window.start, window.end)
    since = ledger_starts.capacity_recorded_since()
    return page(
        request, rows, lambda found: [_proof(row, since.get(row.cluster_id)) for row in found], "-hour", "cluster_id"
    )


def _proof(row: BalanceProof, since: datetime | None) -> dict[str, Any]:
    names = ("capacity_gpu_hours", "unmanaged", "unavailable", "stranded", "idle", "variance")
    is_known = since is not None and since <= row.hour
    return {
        "window": {"start": row.hour, "end": row.hour + HOUR},
        "cluster": row.cluster_id,
        "checked_at": row.checked_at,
        "balanced": row.balanced,
        "accounts": row.accounts,
        "capacity_recorded_since": since,
        "held": f"{row.held:f}",
        **{name: f"{getattr(row, name):f}" if is_known else None for name in names},
        "failures": row.failures,
        "failure_count": row.failure_count,
    }


urlpatterns = [
    path("costs/proof", proof),
]
