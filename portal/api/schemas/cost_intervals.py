"""The intervals of an allocation or a Job in REST answers about costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Annotated, Any
from uuid import UUID

from portal.api.http.pagination import page_schema
from portal.api.schemas.outputs import INLINE, output_of
from portal.core.money import Hours, HoursOrZero, Money
from quotas.costs.cost_rows import COST_HELP, UNPRICED_HELP

UNUSED_HELP = (
    "Decimal, of gpu_hours: held while no pod of the allocation was on a node, or reserved by a queued Job and used by "
    "no pod of it. null: when it had pods is not recorded from its start on."
)
UNUSED_COST_HELP = "Decimal, of cost: what was charged for unused_gpu_hours. null also if they have no price."


@dataclass(frozen=True)
class IntervalEvidenceOut:
    start: Annotated[
        Mapping[str, Any],
        "Kind, name and resourceVersion of the object that showed the start.",
        attrgetter("source_start"),
    ]
    end: Annotated[Mapping[str, Any] | None, "The same of the end; null while it is open.", attrgetter("source_end")]


@dataclass(frozen=True)
class IntervalRow:
    """What is read from a ``UsageInterval``."""

    id: Annotated[UUID, attrgetter("key")]
    offering: str
    flavor: str
    kind: str
    count: int
    gpu_share: Annotated[
        str,
        "What a slice takes of a GPU, as a fraction such as 1/7.",
        lambda row: f"{row.gpu_share_numerator}/{row.gpu_share_denominator}",
    ]
    cluster: Annotated[str, attrgetter("cluster_id")]
    node: Annotated[str, "Empty where Kubernetes does not say."]
    device: Annotated[str, "Empty where Kubernetes does not say."]
    department: str
    team: str
    project: str
    member: Annotated[str, "Empty for a Job."]
    namespace: str
    labels: Mapping[str, str]
    start: datetime
    end: Annotated[datetime | None, "null: it is held now."]
    estimated_start: Annotated[bool, "Nobody saw it: the cluster's own time, or the last sighting."]
    estimated_end: Annotated[bool, "Nobody saw it: the last sighting."]
    unused: Annotated[bool, "Reserved by a queued Job and used by no pod of it."]
    overtime: Annotated[bool, "Held past its end, since the portal ended it late."]
    charged: Annotated[
        bool, "false: at the price 0, since overtime is not charged here.", lambda row: not row.uncharged
    ]
    evidence: Annotated[IntervalEvidenceOut, lambda row: row]
    recorded_at: datetime


@dataclass(frozen=True)
class IntervalOut:
    """What is read from a ``ChargedInterval``."""

    row: Annotated[IntervalRow, INLINE]
    device_uuid: Annotated[str, "As published now while it is held, else as when the hold began."]
    gpu_hours: Decimal
    unpriced_gpu_hours: Annotated[HoursOrZero, UNPRICED_HELP]
    cost: Annotated[Decimal | None, COST_HELP]


@dataclass(frozen=True)
class UnusedDayOut:
    """What is read from a day and its ``UnusedAmount``."""

    date: Annotated[date, "A day of the time zone on which something was held.", itemgetter(0)]
    unused_gpu_hours: Annotated[Decimal | None, lambda found: found[1] and found[1].gpu_hours]
    unused_cost: Annotated[Decimal | None, lambda found: found[1] and found[1].cost]


@dataclass(frozen=True)
class IntervalSums:
    """What an answer says of all intervals; read from ``HolderCosts``."""

    currency: str
    gpu_hours: Annotated[Hours, "The sum over the intervals of all pages.", attrgetter("charge.reserved")]
    unpriced_gpu_hours: Annotated[HoursOrZero, UNPRICED_HELP, attrgetter("charge.unpriced")]
    cost: Annotated[Money | None, COST_HELP, attrgetter("charge.cost")]
    unused_gpu_hours: Annotated[Decimal | None, UNUSED_HELP, lambda found: found.unused and found.unused.gpu_hours]
    unused_cost: Annotated[Decimal | None, UNUSED_COST_HELP, lambda found: found.unused and found.unused.cost]
    unused_by_day: Annotated[
        Sequence[UnusedDayOut],
        "The same of each day; the days add up to it.",
        lambda found: found.unused_by_day.items(),
    ]


@dataclass(frozen=True)
class IntervalEnd:
    """Read from the ``CostAtEnd`` of what is held, if there is one."""

    ends_at: Annotated[
        datetime | None,
        "When its time is over; null if it holds nothing, and of a Job.",
        lambda at_end: at_end and at_end.ends_at,
    ]
    cost_at_end: Annotated[
        Money | None,
        "What it will have cost then, by the prices that are known now.",
        lambda at_end: at_end and at_end.charge.cost,
    ]


IntervalPage = page_schema(output_of(IntervalOut), output_of(IntervalSums), output_of(IntervalEnd))
