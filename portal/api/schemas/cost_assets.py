"""GPUs and nodes in REST answers about costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Annotated
from uuid import UUID

from portal.api.http.pagination import page_schema
from portal.api.schemas.outputs import output_of
from portal.core.money import Hours, HoursOrZero, Money, Written, text
from quotas.costs.assets import Asset, AssetKind
from quotas.costs.cost_rows import COST_HELP, UNPRICED_HELP
from quotas.costs.rating import RatedUsage, Window
from quotas.metering.parts import Category

MAX_HOLDERS = 20
UNKNOWN = "Empty where Kubernetes does not say."
NOT_RECORDED = "null: the window begins before the capacity of the cluster is recorded."
COST_NOT_HELD = f"At the price of the GPU. {COST_HELP} Or {NOT_RECORDED}"


@dataclass(frozen=True)
class AssetHolderOut:
    id: Annotated[UUID, "Of the allocation or the Job."]
    team: str
    project: str
    gpu_hours: Hours
    cost: Annotated[Money | None, COST_HELP]


def _hours(category: Category) -> Callable[[Asset], Fraction | None]:
    return lambda asset: asset.parts[category].gpu_hours if asset.is_capacity_known else None


def _cost(category: Category) -> Callable[[Asset], Fraction | None]:
    return lambda asset: asset.parts[category].cost if asset.is_capacity_known else None


def _held(asset: Asset) -> RatedUsage:
    return asset.parts[Category.HELD]


def _holders(asset: Asset) -> list[AssetHolderOut]:
    found = sorted(asset.holders.items(), key=lambda item: (-item[1].gpu_hours, item[0]))
    return [AssetHolderOut(*holder, usage.gpu_hours, usage.cost) for holder, usage in found[:MAX_HOLDERS]]


@dataclass(frozen=True)
class AssetOut:
    type: Annotated[AssetKind, attrgetter("key.kind")]
    cluster: Annotated[str, attrgetter("key.cluster")]
    flavor: Annotated[str, "Empty before the catalogue knew it.", attrgetter("key.flavor")]
    node: Annotated[str, UNKNOWN, attrgetter("key.node")]
    name: Annotated[str, "Of the GPU or the resource; empty for a node.", attrgetter("key.name")]
    uuid: Annotated[str, "Of a GPU, otherwise empty."]
    capacity_gpu_hours: Annotated[
        Hours | None,
        f"The sum of the parts. {NOT_RECORDED}",
        lambda asset: asset.capacity if asset.is_capacity_known else None,
    ]
    held: Annotated[Hours, lambda asset: _held(asset).gpu_hours]
    unmanaged: Annotated[Hours | None, NOT_RECORDED, _hours(Category.UNMANAGED)]
    unavailable: Annotated[Hours | None, NOT_RECORDED, _hours(Category.UNAVAILABLE)]
    stranded: Annotated[Hours | None, NOT_RECORDED, _hours(Category.STRANDED)]
    idle: Annotated[Hours | None, NOT_RECORDED, _hours(Category.IDLE)]
    variance: Annotated[
        Hours | None, f"Negative if more is charged than there is. {NOT_RECORDED}", _hours(Category.VARIANCE)
    ]
    occupancy: Annotated[Fraction | None, "held by capacity; null without capacity or unknown.", Written(text)]
    cost: Annotated[Money | None, f"Of what was held. {COST_HELP}", lambda asset: _held(asset).cost]
    unpriced_gpu_hours: Annotated[HoursOrZero, UNPRICED_HELP, lambda asset: _held(asset).unpriced_gpu_hours]
    unmanaged_cost: Annotated[Money | None, COST_NOT_HELD, _cost(Category.UNMANAGED)]
    unavailable_cost: Annotated[Money | None, COST_NOT_HELD, _cost(Category.UNAVAILABLE)]
    stranded_cost: Annotated[Money | None, COST_NOT_HELD, _cost(Category.STRANDED)]
    idle_cost: Annotated[Money | None, COST_NOT_HELD, _cost(Category.IDLE)]
    holders: Annotated[Sequence[AssetHolderOut], f"At most {MAX_HOLDERS}, who held most first.", _holders]
    holder_count: Annotated[int, lambda asset: len(asset.holders)]


@dataclass(frozen=True)
class InWindow:
    window: Window


AssetPage = page_schema(output_of(AssetOut), output_of(InWindow))
