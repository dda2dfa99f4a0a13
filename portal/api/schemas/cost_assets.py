"""GPUs and nodes in REST answers about costs."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from portal.api.http.pagination import Page
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount
from portal.api.schemas.cost_report import WindowOut
from portal.api.schemas.decimal_text import DecimalText
from portal.core import money
from quotas.costs import assets
from quotas.costs.assets import Asset, AssetKind
from quotas.metering.parts import Category

MAX_HOLDERS = 20
OCCUPANCY_PLACES = 4
UNKNOWN = "Empty where Kubernetes does not say."
NOT_RECORDED = "null: the window begins before the capacity of the cluster is recorded."
COST_NOT_HELD = f"At the price of the GPU. {COST_HELP} Or {NOT_RECORDED}"
NOT_HELD = (Category.UNMANAGED, Category.UNAVAILABLE, Category.STRANDED, Category.IDLE)
"""The categories of which the cost is told, though nobody is charged for it."""


class AssetHolderOut(serializers.Serializer):
    id = serializers.UUIDField(help_text="Of the allocation or the Job.")
    team = serializers.CharField()
    project = serializers.CharField()
    gpu_hours = DecimalText()
    cost = DecimalText(allow_null=True, help_text=COST_HELP)


class AssetOut(serializers.Serializer):
    type = serializers.ChoiceField(list(AssetKind))
    cluster = serializers.CharField()
    flavor = serializers.CharField(help_text="Empty before the catalogue knew it.")
    node = serializers.CharField(help_text=UNKNOWN)
    name = serializers.CharField(help_text="Of the GPU or the resource; empty for a node.")
    uuid = serializers.CharField(help_text="Of a GPU, otherwise empty.")
    capacity_gpu_hours = DecimalText(allow_null=True, help_text=f"The sum of the parts. {NOT_RECORDED}")
    held = DecimalText()
    unmanaged = DecimalText(allow_null=True, help_text=NOT_RECORDED)
    unavailable = DecimalText(allow_null=True, help_text=NOT_RECORDED)
    stranded = DecimalText(allow_null=True, help_text=NOT_RECORDED)
    idle = DecimalText(allow_null=True, help_text=NOT_RECORDED)
    variance = DecimalText(allow_null=True, help_text=f"Negative if more is charged than there is. {NOT_RECORDED}")
    occupancy = DecimalText(allow_null=True, help_text="held by capacity; null without capacity or unknown.")
    cost = DecimalText(allow_null=True, help_text=f"Of what was held. {COST_HELP}")
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    unmanaged_cost = DecimalText(allow_null=True, help_text=COST_NOT_HELD)
    unavailable_cost = DecimalText(allow_null=True, help_text=COST_NOT_HELD)
    stranded_cost = DecimalText(allow_null=True, help_text=COST_NOT_HELD)
    idle_cost = DecimalText(allow_null=True, help_text=COST_NOT_HELD)
    holders = AssetHolderOut(many=True, help_text=f"At most {MAX_HOLDERS}, who held most first.")
    holder_count = serializers.IntegerField()


class AssetPage(Page):
    results = AssetOut(many=True)
    window = WindowOut()


def rows(found: Sequence[Asset]) -> list[dict[str, Any]]:
    """Return assets in an answer."""
    uuids = assets.uuids(found)
    return [_row(one, uuids.get(one.key, "")) for one in found]


def _row(one: Asset, uuid: str) -> dict[str, Any]:
    held = one.parts[Category.HELD]
    hours = {each.value: one.parts[each].gpu_hours for each in Category} | {"capacity_gpu_hours": one.capacity}
    is_known = {name: one.is_capacity_known or name == Category.HELD for name in hours}
    holders = sorted(one.holders.items(), key=lambda item: (-item[1].gpu_hours, item[0]))
    return {
        "type": one.key.kind.value,
        "cluster": one.key.cluster,
        "flavor": one.key.flavor,
        "node": one.key.node,
        "name": one.key.name,
        "uuid": uuid,
        **{name: money.text(each, money.HOURS_PLACES) if is_known[name] else None for name, each in hours.items()},
        "occupancy": None if one.occupancy is None else money.text(one.occupancy, OCCUPANCY_PLACES),
        "cost": amount(held.cost),
        "unpriced_gpu_hours": money.hours_text(held.unpriced_gpu_hours),
        **{f"{each}_cost": amount(one.parts[each].cost) if one.is_capacity_known else None for each in NOT_HELD},
        "holders": [
            {
                "id": str(holder.id),
                "team": holder.team,
                "project": holder.project,
                "gpu_hours": money.text(usage.gpu_hours, money.HOURS_PLACES),
                "cost": amount(usage.cost),
            }
            for holder, usage in holders[:MAX_HOLDERS]
        ],
        "holder_count": len(holders),
    }
