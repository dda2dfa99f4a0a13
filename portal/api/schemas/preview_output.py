"""The preview of a request in REST answers (docs/reference/api.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from allocations.capacity.node_shares import of_request
from allocations.domain.documents import FieldInfo
from allocations.domain.isolation import LEVELS
from allocations.requests.advice import WarningReason
from allocations.requests.preview import Preview, PreviewWarning
from portal.api.schemas.allocation_output import PlannedOut, hours, planned
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.outputs import output_of
from portal.core.errors import Violation
from portal.core.money import DecimalString, Money

FITS = FieldInfo(choices=("now", "queue", "never"))


@dataclass(frozen=True)
class AlternativeOut:
    """What ``Alternative.document`` returns."""

    offering: str
    count: int
    hours: Annotated[DecimalString, "Decimal."]
    starts_at: datetime | None
    price: Annotated[DecimalString | None, "Decimal, in total."]
    fits: Annotated[str, FITS]


@dataclass(frozen=True)
class WarningPreviewedOut:
    reason: WarningReason
    detail: str
    hint: str
    alternative: Annotated[
        Mapping[str, Any] | None, "An offering that suits it better.", partial(output_of(AlternativeOut))
    ]


@dataclass(frozen=True)
class PriceQuotedOut:
    per_hour: Annotated[Money | None, "Decimal; null without a price."]
    total: Annotated[Money | None, "Decimal; null without a price."]
    currency: str


@dataclass(frozen=True)
class WaitOut:
    p50_s: int | None = None
    p90_s: int | None = None


@dataclass(frozen=True)
class PreviewOut:
    fits: Annotated[str, FITS]
    reasons: Sequence[Violation]
    alternatives: Annotated[Sequence[Mapping[str, Any]], partial(output_of(AlternativeOut), many=True)]
    warnings: Annotated[Sequence[WarningPreviewedOut], "Choices that are accepted but probably unintended."]
    isolation: Annotated[str, FieldInfo(choices=LEVELS)]
    isolation_note: str
    node_share: Annotated[NodeShareOut | None, "CPU, memory and pods of its node that come with all slices."]
    matching_devices: Annotated[
        Sequence[int],
        "Of a custom claim: the devices that meet each request or alternative, in order, in use or not.",
    ]
    price: PriceQuotedOut
    wait: WaitOut
    manifests: Sequence[PlannedOut]
    starts_at: datetime | None
    expected_start: Annotated[
        datetime | None,
        "When the slices are expected to be held: now, at starts_at, or once the ends of allocations release enough, "
        "as they are now; null if never or unknown.",
    ]
    hours: Annotated[DecimalString | None, "Decimal: time held, or null if an end date was requested."]
    ends_at: Annotated[datetime | None, "The requested end date; with hours null until held."]
    give_up_at: Annotated[datetime, "When it would end if it were not held by then."]


NO_ESTIMATE = WaitOut()


def preview(seen: Preview, objects: Sequence[Mapping[str, Any]]) -> PreviewOut:
    return PreviewOut(
        fits=seen.fits,
        reasons=seen.violations,
        alternatives=[alternative.document() for alternative in seen.alternatives],
        warnings=[_warning(warned) for warned in seen.warnings],
        isolation=seen.isolation.level,
        isolation_note=seen.isolation.note,
        node_share=node_share(of_request(seen.offering, seen.spec.count, seen.claim)),
        matching_devices=seen.prepared_claim.matches() if seen.prepared_claim else [],
        price=PriceQuotedOut(seen.price_per_hour, seen.price_total, seen.currency),
        wait=NO_ESTIMATE,
        manifests=[planned(content) for content in objects],
        starts_at=seen.period.starts_at,
        expected_start=seen.expected_start,
        hours=hours(seen.period.hours),
        ends_at=seen.period.ends_at,
        give_up_at=seen.period.give_up_at,
    )


def _warning(warned: PreviewWarning) -> WarningPreviewedOut:
    alternative = warned.alternative.document() if warned.alternative else None
    return WarningPreviewedOut(warned.reason, warned.detail, warned.hint, alternative)
