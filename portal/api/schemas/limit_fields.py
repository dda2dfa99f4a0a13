"""The fields of limits, and of what setting one would do."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Annotated, Literal
from uuid import UUID

from allocations.domain.documents import FieldInfo
from allocations.limits import services as limit_services
from portal.api.http.edits import Update
from portal.api.http.strict import Body, Integer, Text
from portal.api.schemas.allocation_output import OF_PHASES
from portal.api.schemas.outputs import output_of
from portal.core.money import Written
from quotas.limits import services
from quotas.limits.differences import Difference
from quotas.limits.models import MAX_UNITS
from quotas.limits.tree import Quota

HOLDER_KINDS = ["department", "team", "project", "member"]
QUOTA_HOLDER_KINDS = ["department", "team"]
Units = Annotated[Fraction, Written(limit_services.text)]


@dataclass(frozen=True)
class LimitScope:
    holder_kind: Annotated[str, FieldInfo(choices=tuple(HOLDER_KINDS))]
    holder: Annotated[str, "Slug; team/username of a member."]
    scope_kind: Literal["pool", "offering", "flavor", "all"]
    scope: Annotated[str, "Id of the pool or offering, name of the flavor, or all."]


@dataclass(frozen=True)
class LimitOut(LimitScope):
    id: int
    unit: Annotated[
        str,
        "GPUs, slices, or units of the pool.",
        lambda row: limit_services.unit(services.holder_and_scope(row)[1]),
    ]
    nominal: int
    borrowing: Annotated[int | None, "null: unlimited."]
    lending: Annotated[int | None, "null: all of its unused quota."]
    used: Annotated[
        Units | None,
        "Decimal; null where Kueue keeps the limit, see /queues/{team}.",
        lambda row: None if row.is_enforced_by_kueue else row.units_used,
    ]
    enforced_by: Annotated[Literal["kueue", "portal"], lambda row: "kueue" if row.is_enforced_by_kueue else "portal"]


class LimitSpecBody(Body):
    nominal = Integer(min_value=0, max_value=MAX_UNITS)
    borrowing = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS, default=0)
    lending = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS, default=None)


class LimitSpecChange(Update):
    """A limit as GET gives it, or a part of it; omitted amounts stay unchanged. What is used is ignored."""

    shown = output_of(LimitOut)
    observed = frozenset({"used"})
    nominal = Integer(required=False, min_value=0, max_value=MAX_UNITS)
    borrowing = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS)
    lending = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS)


class LimitBody(LimitSpecBody):
    """A limit: its holder (`department`, `team`, `project`, or `team` with `member`) and its scope (`pool`, `offering`,
    `flavor`, or none of them for all GPUs).
    """

    exclusive = (("department", "team", "project"), ("pool", "offering", "flavor"))
    department = Text(required=False)
    team = Text(required=False)
    project = Text(required=False)
    member = Text(required=False, help_text="Username; with team.")
    pool = Text(required=False)
    offering = Text(required=False)
    flavor = Text(required=False)


@dataclass(frozen=True)
class TouchedOut:
    id: UUID
    name: str
    project: Annotated[str, attrgetter("project.slug")]
    offering: Annotated[str, attrgetter("offering.key")]
    slices: Annotated[int, "Of a custom claim its devices."]
    phase: Annotated[str, OF_PHASES]


Differences = Annotated[
    Sequence[Difference], partial(output_of(Difference, "FieldOut"), many=True), attrgetter("objects")
]


@dataclass(frozen=True)
class LimitEffectOut:
    before: Annotated[Quota | None, partial(output_of(Quota, "AmountsOut"))]
    after: Annotated[Quota, partial(output_of(Quota, "AmountsOut"))]
    unit: str
    in_use: Units
    over: Annotated[Units, "In use beyond all that it can get with this limit; the change ends nothing."]
    borrowed: Annotated[
        Units, "In use beyond its guaranteed quota with this limit: Kueue may reclaim it for the lender."
    ]
    allocations: Annotated[Sequence[TouchedOut], attrgetter("affected")]
    detail: Annotated[str, attrgetter("sentence")]


@dataclass(frozen=True)
class EffectOut(LimitEffectOut):
    kueue: Differences
