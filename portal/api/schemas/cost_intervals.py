"""The intervals of an allocation or a Job in REST answers about costs."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from allocations.requests.costs_at_end import CostAtEnd
from portal.api.http.pagination import Page
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.core import money
from quotas.costs.holder_costs import ChargedInterval, HolderCosts, UnusedAmount
from quotas.metering.models import UsageInterval

COPIED = (
    *("offering", "flavor", "kind", "count", "cluster", "node", "device"),
    *("department", "team", "project", "member", "namespace", "labels"),
    *("start", "end", "estimated_start", "estimated_end", "unused", "overtime", "recorded_at"),
)
UNUSED_HELP = (
    "Decimal, of gpu_hours: held while no pod of the allocation was on a node, or reserved by a queued Job and used by "
    "no pod of it. null: when it had pods is not recorded from its start on."
)
UNUSED_COST_HELP = "Decimal, of cost: what was charged for unused_gpu_hours. null also if they have no price."


class IntervalEvidenceOut(serializers.Serializer):
    start = JsonObject(help_text="Kind, name and resource version of the object that showed the start.")
    end = JsonObject(allow_null=True, help_text="The same of the end; null while it is open.")


class IntervalOut(serializers.Serializer):
    id = serializers.UUIDField()
    offering = serializers.CharField()
    flavor = serializers.CharField()
    kind = serializers.CharField()
    count = serializers.IntegerField()
    gpu_share = serializers.CharField(help_text="What a slice takes of a GPU, as a fraction such as 1/7.")
    cluster = serializers.CharField()
    node = serializers.CharField(help_text="Empty where Kubernetes does not say.")
    device = serializers.CharField(help_text="Empty where Kubernetes does not say.")
    device_uuid = serializers.CharField(help_text="As published now while it is held, else as when the hold began.")
    department = serializers.CharField()
    team = serializers.CharField()
    project = serializers.CharField()
    member = serializers.CharField(help_text="Empty for a Job.")
    namespace = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField(allow_blank=True))
    start = serializers.DateTimeField()
    end = serializers.DateTimeField(allow_null=True, help_text="null: it is held now.")
    estimated_start = serializers.BooleanField(help_text="Nobody saw it: the cluster's own time, or the last sighting.")
    estimated_end = serializers.BooleanField(help_text="Nobody saw it: the last sighting.")
    unused = serializers.BooleanField(help_text="Reserved by a queued Job and used by no pod of it.")
    overtime = serializers.BooleanField(help_text="Held past its end, since the portal ended it late.")
    charged = serializers.BooleanField(help_text="false: at the price 0, since overtime is not charged here.")
    gpu_hours = DecimalText()
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    cost = DecimalText(allow_null=True, help_text=COST_HELP)
    evidence = IntervalEvidenceOut()
    recorded_at = serializers.DateTimeField()


class UnusedDayOut(serializers.Serializer):
    date = serializers.DateField(help_text="A day of the time zone on which something was held.")
    unused_gpu_hours = DecimalText(allow_null=True)
    unused_cost = DecimalText(allow_null=True)


class IntervalPage(Page):
    results = IntervalOut(many=True)
    currency = serializers.CharField()
    gpu_hours = DecimalText(help_text="The sum over the intervals of all pages.")
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    cost = DecimalText(allow_null=True, help_text=COST_HELP)
    unused_gpu_hours = DecimalText(allow_null=True, help_text=UNUSED_HELP)
    unused_cost = DecimalText(allow_null=True, help_text=UNUSED_COST_HELP)
    unused_by_day = UnusedDayOut(many=True, help_text="The same of each day; the days add up to it.")
    ends_at = serializers.DateTimeField(
        allow_null=True, help_text="When its time is over; null if it holds nothing, and of a Job."
    )
    cost_at_end = DecimalText(
        allow_null=True, help_text="What it will have cost then, by the prices that are known now."
    )


def body(found: HolderCosts, at_end: CostAtEnd | None) -> dict[str, Any]:
    """Return the sums of an answer."""
    return {
        "ends_at": at_end.ends_at if at_end else None,
        "cost_at_end": amount(at_end.charge.cost) if at_end else None,
        "currency": found.currency,
        "gpu_hours": money.text(found.charge.reserved, money.HOURS_PLACES),
        "unpriced_gpu_hours": money.hours_text(found.charge.unpriced),
        "cost": amount(found.charge.cost),
        **_unused(found.unused),
        "unused_by_day": [{"date": f"{day:%Y-%m-%d}", **_unused(one)} for day, one in found.unused_by_day.items()],
    }


def rows(found: Sequence[ChargedInterval]) -> list[dict[str, Any]]:
    """Return intervals in an answer."""
    return [_row(one, one.row) for one in found]


def _unused(found: UnusedAmount | None) -> dict[str, str | None]:
    return {
        "unused_gpu_hours": None if found is None else str(found.gpu_hours),
        "unused_cost": None if found is None or found.cost is None else str(found.cost),
    }


def _row(one: ChargedInterval, row: UsageInterval) -> dict[str, Any]:
    return {
        "id": str(row.key),
        **{name: getattr(row, f"{name}_id" if name == "cluster" else name) for name in COPIED},
        "device_uuid": one.device_uuid,
        "gpu_share": f"{row.gpu_share_numerator}/{row.gpu_share_denominator}",
        "charged": not row.uncharged,
        "gpu_hours": str(one.gpu_hours),
        "unpriced_gpu_hours": str(one.unpriced_gpu_hours) if one.unpriced_gpu_hours else money.hours_text(0),
        "cost": None if one.cost is None else str(one.cost),
        "evidence": {"start": row.source_start, "end": row.source_end},
    }
