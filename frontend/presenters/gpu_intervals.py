"""What the GPUs of a node were, as rows with their times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from frontend.presenters.costs_names import names_of
from frontend.presenters.fleet_hours import TITLES
from portal.core import money
from portal.tenants.models import User
from quotas.costs.asset_strips import GpuStrip, StripPart

PLACES = 2


@dataclass(frozen=True)
class GpuInterval:
    """A time in which a part of a GPU was of a category."""

    gpu: str
    part: StripPart


@dataclass(frozen=True)
class IntervalRow:
    """``gpus`` is a part of the GPU. ``url`` leads to the costs of who held it; "" for what was not held."""

    gpu: str
    start: datetime
    end: datetime
    category: str
    gpus: str
    holder: str = ""
    team: str = ""
    url: str = ""


def intervals(found: Iterable[GpuStrip]) -> list[GpuInterval]:
    """Return all times by GPU, oldest first."""
    return [GpuInterval(strip.asset.key.name, part) for strip in found for part in strip.parts]


def rows(user: User, shown: Sequence[GpuInterval]) -> list[IntervalRow]:
    """Return the rows of a page, with the names of the allocations and Jobs that held a part; two queries."""
    names = names_of(user, {str(one.part.holder.id) for one in shown if one.part.holder})
    return [_row(one, names) for one in shown]


def _row(one: GpuInterval, names: dict[str, str]) -> IntervalRow:
    part, holder = one.part, one.part.holder
    row = IntervalRow(one.gpu, part.start, part.end, TITLES[part.category], money.text(part.gpus, PLACES))
    if holder is None:
        return row
    name = names.get(str(holder.id)) or f"{holder.project} / {holder.id}"
    url = reverse("costs-allocation", args=[holder.id])
    return IntervalRow(row.gpu, row.start, row.end, row.category, row.gpus, name, holder.team, url)
