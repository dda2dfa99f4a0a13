"""Savings in REST answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any
from uuid import UUID

from portal.api.http.pagination import page_schema
from portal.api.schemas.outputs import output_of
from portal.core.money import Hours, HoursOrZero, Money
from quotas.costs import savings_rules
from quotas.costs.cost_rows import COST_HELP, UNPRICED_HELP
from quotas.costs.rating import RatedUsage, Window
from quotas.costs.savings import Savings
from quotas.costs.savings_rules import Layout, Saving, SavingKind

NOT_ROLLED_UP = "null: too much of the window is not rolled up."
KINDS = [kind.value for kind in SavingKind]
NAME_HELP = "Empty where it does not apply."


def _used(name: str) -> Any:
    return lambda saving: saving.usage and getattr(saving.usage, name)


def _allocation(saving: Saving) -> UUID | None:
    return saving.holder_id if saving.member else None


def _job(saving: Saving) -> UUID | None:
    return None if saving.member else saving.holder_id


@dataclass(frozen=True)
class SavingOut:
    kind: Annotated[
        SavingKind,
        "idle_hold: held now, without any pod. quiet_hours: held at night or on weekends, without any pod. "
        "unused_quota: idle GPUs of a team that held nothing of the flavor. stranded: free, but no offered slice fits; "
        "for operators and auditors. unpriced: offered or used without a price.",
    ]
    cluster: Annotated[str, NAME_HELP]
    flavor: str
    offering: Annotated[str, NAME_HELP]
    team: Annotated[str, NAME_HELP]
    project: Annotated[str, NAME_HELP]
    member: Annotated[str, NAME_HELP]
    allocation: Annotated[UUID | None, "Of what was held without pods.", _allocation]
    job: Annotated[UUID | None, "Of what a queued Job held without pods.", _job]
    since: Annotated[datetime | None, "Since when an idle hold has had no pod."]
    gpu_hours: Annotated[Hours | None, f"In the window. {NOT_ROLLED_UP}", _used("gpu_hours")]
    unpriced_gpu_hours: Annotated[HoursOrZero | None, f"{UNPRICED_HELP} {NOT_ROLLED_UP}", _used("unpriced_gpu_hours")]
    cost: Annotated[Money | None, f"In the window. {COST_HELP} Or {NOT_ROLLED_UP}", _used("cost")]
    cost_per_hour: Annotated[
        Money | None,
        "Of idle holds and stranded GPUs, at the prices in force now; null without one.",
        attrgetter("per_hour"),
    ]
    layouts: Annotated[Sequence[Layout], "What is stranded now, by the slice that would fit."]


@dataclass(frozen=True)
class SavingTotalOut:
    kind: SavingKind
    count: int
    gpu_hours: Annotated[Hours, "Of those whose hours are known."]
    cost: Annotated[Money | None, COST_HELP]


def _totals(found: Savings) -> list[SavingTotalOut]:
    sums = savings_rules.totals(found.found)
    counts = Counter(one.kind for one in found.found)
    return [
        SavingTotalOut(kind, counts[kind], usage.gpu_hours, usage.cost)
        for kind in SavingKind
        if counts[kind]
        for usage in (sums.get(kind, RatedUsage()),)
    ]


@dataclass(frozen=True)
class SavingSums:
    totals: Annotated[
        Sequence[SavingTotalOut], "Of all pages, by kind; kinds of which there is nothing are absent.", _totals
    ]
    currency: str
    window: Window


SavingPage = page_schema(output_of(SavingOut), output_of(SavingSums))
