"""Usage and cost, aggregated by any key of the ledger."""

from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import query_choice, query_flag, query_value, query_values
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount
from portal.core import clock, money
from portal.core.errors import Invalid
from quotas.costs import filters, windows
from quotas.costs.idle_views import IdleBy, IdleMode, IdleSplit, IdleView
from quotas.costs.ledger import KEYS
from quotas.costs.outages import OutageShare, visible_share
from quotas.costs.rating import Window
from quotas.costs.selectors import CostRow, visible_costs
from quotas.metering import ledger_starts, proofs
from quotas.metering.balance import Check
from quotas.metering.hours import HOUR
from quotas.metering.models import BalanceProof

IDLE_HELP = (
    "separate: in rows of its own. share: in the rows of who held something, by `idle_by` and `idle_split`. "
    "owner: in the rows of the teams and departments whose unused quota it is. hide: without what nobody is charged "
    "for. By default separate for platform staff, hide for others, who may also use owner."
)
IDLE_BY_HELP = "With idle=share: between whom. node: where Kubernetes names no GPU, the flavor."
IDLE_SPLIT_HELP = "With idle=share: in proportion to cost, or evenly between the rows."
NOT_HELD_HELP = (
    'For platform staff, by cluster and flavor; "0" for others. null without a price, if the window begins before '
    "`capacity_recorded_since`, or until the time is rolled up."
)
MONTH_HELP = "null while the costs of the month are not known."
IDLE_COST_HELP = f"{NOT_HELD_HELP} With idle=owner also for members: what is idle of their own teams' quota."
UNKNOWN_HELP = "null: the hour begins before capacity is recorded."
WINDOW = OpenApiParameter("window", OpenApiTypes.STR, default="7d", description=windows.WORKS)


class WindowOut(serializers.Serializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class CostRowOut(serializers.Serializer):
    name = serializers.CharField(help_text="Values of the keys, joined by /.")
    window = WindowOut()
    gpu_hours = serializers.CharField()
    unpriced_gpu_hours = serializers.CharField(help_text=UNPRICED_HELP)
    cost = serializers.CharField(allow_null=True, help_text=COST_HELP)
    idle_cost = serializers.CharField(allow_null=True, help_text=IDLE_COST_HELP)
    stranded_cost = serializers.CharField(allow_null=True, help_text=NOT_HELD_HELP)
    unavailable_cost = serializers.CharField(allow_null=True, help_text=NOT_HELD_HELP)
    unmanaged_cost = serializers.CharField(allow_null=True, help_text=NOT_HELD_HELP)
    variance = serializers.CharField(allow_null=True, help_text=f"{NOT_HELD_HELP} Negative if more is charged than is.")
    unpriced_idle_gpu_hours = serializers.CharField(
        allow_null=True, help_text="Of these columns, without a price: the costs above are without them."
    )
    price_variance = serializers.CharField(
        allow_null=True, help_text=f"{NOT_HELD_HELP} What GPUs cost the platform less their price: negative if below."
    )
    node_rest = serializers.CharField(allow_null=True, help_text=f"{NOT_HELD_HELP} What nodes cost besides their GPUs.")
    idle_adjustment = serializers.CharField(allow_null=True, help_text=f"{NOT_HELD_HELP} Of bills.")
    idle_shared_cost = serializers.CharField(allow_null=True, help_text=f"{NOT_HELD_HELP} Of fixed costs.")
    adjustment = serializers.CharField(
        allow_null=True, help_text=f"The part of bills less what was rated. {MONTH_HELP}"
    )
    shared_cost = serializers.CharField(allow_null=True, help_text=f"The part of fixed costs. {MONTH_HELP}")
    total = serializers.CharField(allow_null=True, help_text=f"Of cost, adjustment and shared_cost. {COST_HELP}")
    currency = serializers.CharField()


class OutageOut(serializers.Serializer):
    cluster = serializers.CharField()
    window = WindowOut()


class OutagesOut(serializers.Serializer):
    results = OutageOut(many=True)
    gpu_hours = serializers.CharField(help_text="Charged for these times.")
    cost = serializers.CharField(allow_null=True, help_text=COST_HELP)


class CapacitySinceOut(serializers.Serializer):
    cluster = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True, help_text="null: not recorded yet.")


class CostsOut(serializers.Serializer):
    results = CostRowOut(many=True)
    currency = serializers.CharField()
    unpriced_gpu_hours = serializers.CharField(help_text="The sum over the rows: their costs are without these.")
    window = WindowOut()
    billed_share = serializers.CharField(
        allow_null=True,
        help_text="For platform staff: the part of the cost of capacity that bills cover, 0 to 1. null: none.",
    )
    outages = OutagesOut(help_text="Times in which nobody recorded a cluster; what is charged for them is in the rows.")
    capacity_recorded_since = CapacitySinceOut(
        many=True, help_text="For platform staff. Before it only what was held is known. Empty for others."
    )


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
    capacity_gpu_hours = serializers.CharField(
        allow_null=True, help_text=f"The sum of the six parts, if the hour is balanced. {UNKNOWN_HELP}"
    )
    held = serializers.CharField()
    unmanaged = serializers.CharField(allow_null=True, help_text=UNKNOWN_HELP)
    unavailable = serializers.CharField(allow_null=True, help_text=UNKNOWN_HELP)
    stranded = serializers.CharField(allow_null=True, help_text=UNKNOWN_HELP)
    idle = serializers.CharField(allow_null=True, help_text=UNKNOWN_HELP)
    variance = serializers.CharField(
        allow_null=True, help_text=f"Negative if more is charged than there is. {UNKNOWN_HELP}"
    )
    failures = FailureOut(many=True, help_text=f"At most {BalanceProof.MAX_FAILURES}.")
    failure_count = serializers.IntegerField()


@extend_schema(
    parameters=[
        WINDOW,
        OpenApiParameter("aggregate", OpenApiTypes.STR, default="project", description=f"Of {', '.join(KEYS)}."),
        OpenApiParameter("accumulate", OpenApiTypes.BOOL, default=True, description="false: a row per UTC day."),
        OpenApiParameter("idle", OpenApiTypes.STR, enum=[one.value for one in IdleMode], description=IDLE_HELP),
        OpenApiParameter(
            "idle_by", OpenApiTypes.STR, enum=[one.value for one in IdleBy], default="cluster", description=IDLE_BY_HELP
        ),
        OpenApiParameter(
            "idle_split",
            OpenApiTypes.STR,
            enum=[one.value for one in IdleSplit],
            default="weighted",
            description=IDLE_SPLIT_HELP,
        ),
        OpenApiParameter("filter", OpenApiTypes.STR, description='As OpenCost: team:"vision"+kind:"whole".'),
    ],
    responses=CostsOut,
)
@api_view(["GET"])
def costs(request: Request) -> Response:
    """Return usage and cost of everything the caller may see. Amounts are decimal strings. Usage without a price has no
    cost: it is `unpriced_gpu_hours`. What nobody holds is in a row named `__idle__` where the keys are others than
    cluster and flavor, but for `idle=share` and `idle=owner`.
    """
    idle = _idle_view(request)
    user, window = current_user(request), windows.parse(_window(request), clock.now())
    # In a URL a bare + is a space.
    where = filters.parse(query_value(request, "filter").replace(" ", "+"))
    found = visible_costs(
        user,
        window,
        query_values(request, "aggregate") or ["project"],
        accumulate=query_flag(request, "accumulate", True),
        where=where,
        idle=idle,
    )
    return Response(
        {
            "results": [_row(row) for row in found.rows],
            "currency": found.currency,
            "unpriced_gpu_hours": found.unpriced_gpu_hours,
            "window": _span(found.window),
            "billed_share": found.billed_share,
            "outages": _outages(visible_share(user, window, where)),
            "capacity_recorded_since": [
                {"cluster": cluster, "since": since} for cluster, since in sorted(found.capacity_recorded_since.items())
            ],
        }
    )


@extend_schema(parameters=[WINDOW], responses=page_schema(ProofOut))
@api_view(["GET"])
def proof(request: Request) -> Response:
    """List the hours that were checked, newest first: their GPU-hours, and the rows that do not add up. For operators
    and auditors.
    """
    window = windows.parse(_window(request), clock.now())
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


def _outages(found: OutageShare) -> dict[str, Any]:
    return {
        "results": [{"cluster": one.cluster, "window": _span(one.window)} for one in found.outages],
        "gpu_hours": money.hours_text(found.charged.gpu_hours),
        "cost": amount(found.charged.cost),
    }


def _idle_view(request: Request) -> IdleView | None:
    """Return the view in the query parameters; None without one."""
    mode = query_choice(request, "idle", IdleMode.SEPARATE) if "idle" in request.query_params else None
    for name in ("idle_by", "idle_split"):
        if name in request.query_params and mode != IdleMode.SHARE:
            raise Invalid({name: ["It goes with idle=share."]})
    by, split = (
        query_choice(request, "idle_by", IdleBy.CLUSTER),
        query_choice(request, "idle_split", IdleSplit.WEIGHTED),
    )
    return None if mode is None else IdleView(mode, by, split)


def _window(request: Request) -> str:
    """Return the window in the query parameters; the + of an offset (+02:00) may arrive as a space."""
    return query_value(request, "window", "7d").replace(" ", "+")


def _span(window: Window) -> dict[str, Any]:
    return {"start": window.start, "end": window.end}


def _row(row: CostRow) -> dict[str, Any]:
    return {**vars(row), "window": _span(row.window)}
