"""Savings in REST answers."""

from typing import Any

from rest_framework import serializers

from portal.api.http.pagination import Page
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount
from portal.api.schemas.cost_report import WindowOut
from portal.api.schemas.decimal_text import DecimalText
from portal.core import money
from quotas.costs import savings_rules
from quotas.costs.rating import RatedUsage
from quotas.costs.savings import Savings
from quotas.costs.savings_rules import Saving, SavingKind

NOT_ROLLED_UP = "null: too much of the window is not rolled up."
KINDS = [kind.value for kind in SavingKind]
NAME_HELP = "Empty where it does not apply."


class LayoutOut(serializers.Serializer):
    profile = serializers.CharField(help_text="The slice that would fit if it were offered; empty if none would.")
    gpus = DecimalText(help_text="Stranded now, as parts of GPUs.")
    gpu_count = serializers.IntegerField(help_text="The GPUs on which they are.")


class SavingOut(serializers.Serializer):
    kind = serializers.ChoiceField(
        KINDS,
        help_text="idle_hold: held now, without any pod. quiet_hours: held at night or on weekends, without any pod. "
        "unused_quota: idle GPUs of a team that held nothing of the flavor. stranded: free, but no offered slice fits; "
        "for operators and auditors. unpriced: offered or used without a price.",
    )
    cluster = serializers.CharField(help_text=NAME_HELP)
    flavor = serializers.CharField()
    offering = serializers.CharField(help_text=NAME_HELP)
    team = serializers.CharField(help_text=NAME_HELP)
    project = serializers.CharField(help_text=NAME_HELP)
    member = serializers.CharField(help_text=NAME_HELP)
    allocation = serializers.UUIDField(allow_null=True, help_text="Of what was held without pods.")
    job = serializers.UUIDField(allow_null=True, help_text="Of what a queued Job held without pods.")
    since = serializers.DateTimeField(allow_null=True, help_text="Since when an idle hold has had no pod.")
    gpu_hours = DecimalText(allow_null=True, help_text=f"In the window. {NOT_ROLLED_UP}")
    unpriced_gpu_hours = DecimalText(allow_null=True, help_text=f"{UNPRICED_HELP} {NOT_ROLLED_UP}")
    cost = DecimalText(allow_null=True, help_text=f"In the window. {COST_HELP} Or {NOT_ROLLED_UP}")
    cost_per_hour = DecimalText(
        allow_null=True, help_text="Of idle holds and stranded GPUs, at the prices in force now; null without one."
    )
    layouts = LayoutOut(many=True, help_text="What is stranded now, by the slice that would fit.")


class SavingTotalOut(serializers.Serializer):
    kind = serializers.ChoiceField(KINDS)
    count = serializers.IntegerField()
    gpu_hours = DecimalText(help_text="Of those whose hours are known.")
    cost = DecimalText(allow_null=True, help_text=COST_HELP)


class SavingPage(Page):
    results = SavingOut(many=True)
    totals = SavingTotalOut(many=True, help_text="Of all pages, by kind; kinds of which there is nothing are absent.")
    currency = serializers.CharField()
    window = WindowOut()


def row(one: Saving) -> dict[str, Any]:
    """Return a saving in an answer."""
    id_ = str(one.holder_id) if one.holder_id else None
    usage = one.usage
    return {
        "kind": one.kind.value,
        **{name: getattr(one, name) for name in ("cluster", "flavor", "offering", "team", "project", "member")},
        "allocation": id_ if one.member else None,
        "job": None if one.member else id_,
        "since": one.since,
        "gpu_hours": None if usage is None else money.text(usage.gpu_hours, money.HOURS_PLACES),
        "unpriced_gpu_hours": None if usage is None else money.hours_text(usage.unpriced_gpu_hours),
        "cost": None if usage is None else amount(usage.cost),
        "cost_per_hour": amount(one.per_hour),
        "layouts": [
            {
                "profile": layout.profile,
                "gpus": money.text(layout.gpus, money.HOURS_PLACES),
                "gpu_count": layout.gpu_count,
            }
            for layout in one.layouts
        ],
    }


def totals(found: Savings) -> list[dict[str, Any]]:
    """Return the sums by kind."""
    sums = savings_rules.totals(found.found)
    counts = {kind: sum(one.kind is kind for one in found.found) for kind in SavingKind}
    return [
        {
            "kind": kind.value,
            "count": counts[kind],
            "gpu_hours": money.text(usage.gpu_hours, money.HOURS_PLACES),
            "cost": amount(usage.cost),
        }
        for kind in SavingKind
        if counts[kind]
        for usage in (sums.get(kind, RatedUsage()),)
    ]
