"""The hours of the ledger that were checked, with their GPU-hours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend.presenters.amounts import number
from frontend.presenters.fleet_hours import TITLES, UNKNOWN
from quotas.metering.models import BalanceProof
from quotas.metering.parts import Category


@dataclass(frozen=True)
class HourLine:
    """An hour of a cluster; ``amounts`` are (title, GPU-hours) of its parts."""

    cluster: str
    hour: datetime
    is_balanced: bool
    failures: int
    capacity: str
    amounts: Sequence[tuple[str, str]]


def hour_lines(rows: Iterable[BalanceProof], since: Mapping[str, datetime | None]) -> list[HourLine]:
    """Return a line for each hour; before capacity is recorded (``since``, by cluster) only what was held is known."""
    return [_line(row, since.get(row.cluster_id)) for row in rows]


def _line(row: BalanceProof, since: datetime | None) -> HourLine:
    is_known = since is not None and since <= row.hour
    return HourLine(
        cluster=row.cluster_id,
        hour=row.hour,
        is_balanced=row.balanced,
        failures=row.failure_count,
        capacity=number(row.capacity_gpu_hours) if is_known else UNKNOWN,
        amounts=[
            (title, number(getattr(row, category.value)) if is_known or category == Category.HELD else UNKNOWN)
            for category, title in TITLES.items()
        ],
    )
