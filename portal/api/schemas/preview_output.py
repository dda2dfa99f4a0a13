"""The preview of a request in REST answers (docs/reference/api.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from allocations.capacity.node_shares import of_request
from allocations.domain.documents import FieldInfo
from allocations.domain.isolation import LEVELS
from allocations.requests import selectors, services
from allocations.requests.alternatives import FITS, Alternative
from allocations.requests.preview import Preview, PreviewWarning
from portal.api.schemas.allocation_output import PlannedOut
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.outputs import output_of
from portal.core.errors import Violation
from portal.core.money import Hours, Money


@dataclass(frozen=True)
class PriceQuotedOut:
    per_hour: Annotated[Money | None, "Decimal; null without a price.", attrgetter("price_per_hour")]
    total: Annotated[Money | None, "Decimal; null without a price.", attrgetter("price_total")]
    currency: str


@dataclass(frozen=True)
class WaitOut:
    p50_s: int | None = None
    p90_s: int | None = None


NO_ESTIMATE = WaitOut()


def _objects(seen: Preview) -> list[dict[str, Any]]:
    return [content for content, _ in selectors.manifests(services.draft(seen))]


@dataclass(frozen=True)
class PreviewOut:
    """What is read from a ``Preview``."""

    fits: Annotated[str, FITS]
    reasons: Annotated[Sequence[Violation], attrgetter("violations")]
    alternatives: Sequence[Alternative]
    warnings: Annotated[
        Sequence[PreviewWarning],
        "Choices that are accepted but probably unintended.",
        partial(output_of(PreviewWarning, "WarningPreviewedOut"), many=True),
    ]
    isolation: Annotated[str, FieldInfo(choices=LEVELS), attrgetter("isolation.level")]
    isolation_note: Annotated[str, attrgetter("isolation.note")]
    node_share: Annotated[
        NodeShareOut | None,
        "CPU, memory and pods of its node that come with all slices.",
        lambda seen: node_share(of_request(seen.offering, seen.spec.count, seen.claim)),
    ]
    matching_devices: Annotated[
        Sequence[int],
        "Of a custom claim: the devices that meet each request or alternative, in order, in use or not.",
        lambda seen: seen.prepared_claim.matches() if seen.prepared_claim else [],
    ]
    price: Annotated[PriceQuotedOut, lambda seen: seen]
    wait: Annotated[WaitOut, lambda seen: NO_ESTIMATE]
    manifests: Annotated[Sequence[PlannedOut], _objects]
    starts_at: Annotated[datetime | None, attrgetter("period.starts_at")]
    expected_start: Annotated[
        datetime | None,
        "When the slices are expected to be held: now, at starts_at, or once the ends of allocations release enough, "
        "as they are now; null if never or unknown.",
    ]
    hours: Annotated[
        Hours | None, "Decimal: time held, or null if an end date was requested.", attrgetter("period.hours")
    ]
    ends_at: Annotated[
        datetime | None, "The requested end date; with hours null until held.", attrgetter("period.ends_at")
    ]
    give_up_at: Annotated[datetime, "When it would end if it were not held by then.", attrgetter("period.give_up_at")]
