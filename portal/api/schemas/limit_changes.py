"""Several limits in one change, its preview, and the matrix of all quotas."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Annotated

from allocations.domain.documents import FieldInfo
from allocations.limits.changes import MAX_CHANGES
from portal.api.http.strict import Body, List, Text
from portal.api.schemas.limit_fields import (
    QUOTA_HOLDER_KINDS,
    Differences,
    LimitBody,
    LimitEffectOut,
    LimitOut,
    LimitScope,
    Units,
)
from portal.api.schemas.outputs import INLINE
from portal.tenants.models import Team


class ChangesBody(Body):
    changes = List(child=LimitBody(), allow_empty=False, max_length=MAX_CHANGES)


class PreviewedChangesBody(ChangesBody):
    token = Text(help_text="Of the preview of exactly these changes.")


@dataclass(frozen=True)
class ChangeEffectOut:
    """What is read from a limit as it shall be, and from its effect."""

    limit: Annotated[LimitScope, INLINE, itemgetter(0)]
    effect: Annotated[LimitEffectOut, INLINE, itemgetter(1)]


@dataclass(frozen=True)
class PoolSumOut:
    pool: Annotated[str, attrgetter("pool.key")]
    unit: Annotated[str, "GPUs, or units of the pool."]
    available: Annotated[int, "On healthy devices now."]
    before: Annotated[int, "All guaranteed quotas together, now."]
    after: Annotated[int, "All guaranteed quotas together, after the change."]


@dataclass(frozen=True)
class PreviewSums:
    token: Annotated[str, "Send it with the same changes to apply them. It is void once one of the limits has changed."]
    pools: Sequence[PoolSumOut]
    kueue: Differences


@dataclass(frozen=True)
class ChangesPreviewOut(PreviewSums):
    changes: Annotated[Sequence[ChangeEffectOut], "In the order of the changes; as if all were set."]


@dataclass(frozen=True)
class ChangedLimitsOut:
    results: Sequence[LimitOut]


@dataclass(frozen=True)
class MatrixPoolOut:
    id: Annotated[str, attrgetter("pool.key")]
    unit: Annotated[str, "GPUs, or units of the pool."]
    available: Annotated[int | None, "On healthy devices now; null unless you see all teams."]
    allocated: Annotated[int | None, "All guaranteed quotas together; null unless you see all teams."]


@dataclass(frozen=True)
class MatrixCellOut:
    pool: Annotated[str, attrgetter("pool.key")]
    nominal: Annotated[
        int | None,
        "null: no quota is set, which is not one of 0: nothing is borrowed or lent either.",
        lambda cell: cell.quota and cell.quota.nominal,
    ]
    borrowing: Annotated[int | None, "null: unlimited.", lambda cell: cell.quota.borrowing if cell.quota else 0]
    lending: Annotated[
        int | None, "null: all of its unused quota.", lambda cell: cell.quota.lending if cell.quota else 0
    ]
    used: Annotated[Units, "Decimal, in units of the pool; of a department that of its teams."]
    borrowed: Annotated[Units, "Used beyond the team's guaranteed quota."]
    lent: Annotated[Units, "Used by others of this quota."]
    over: Annotated[Units, "The part of `borrowed` that nobody lends, since a limit was lowered."]


@dataclass(frozen=True)
class MatrixRowOut:
    holder_kind: Annotated[
        str,
        FieldInfo(choices=tuple(QUOTA_HOLDER_KINDS)),
        lambda row: "team" if isinstance(row.holder, Team) else "department",
    ]
    holder: Annotated[str, "Slug.", attrgetter("holder.slug")]
    cells: Annotated[Sequence[MatrixCellOut], "One for each pool, in the order of `pools`."]


@dataclass(frozen=True)
class MatrixOut:
    pools: Annotated[Sequence[MatrixPoolOut], attrgetter("columns")]
    results: Annotated[Sequence[MatrixRowOut], attrgetter("rows")]
