"""An allocation, its events and manifests in REST answers (docs/reference/api.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from allocations.capacity import node_shares
from allocations.cluster.kinds import KINDS
from allocations.domain import held_time
from allocations.domain.allocation_spec import AllocationSpec, Constraints, Sharing
from allocations.domain.documents import FieldInfo
from allocations.domain.isolation import LEVELS
from allocations.domain.phases import DERIVED, REACHED
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.queues import queue as team_queue
from allocations.queues.queue import QueuePosition
from allocations.requests import details, selectors
from allocations.requests.advice import ChoiceWarning, WarningReason
from allocations.requests.details import Detail, Details, HeldDevice
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.outputs import INLINE, document, output_of
from portal.core import clock
from portal.core.money import HOURS_PLACES, DecimalString, HoursOrZero, Money, text
from portal.core.reading import Batch
from portal.yaml_text import to_yaml
from quotas.costs.cost_rows import COST_HELP, UNPRICED_HELP

PHASES, OUTCOMES = list(DERIVED), list(REACHED)
WARNING_REASONS = get_args(WarningReason)
OF_PHASES = FieldInfo(choices=tuple(PHASES))


@dataclass(frozen=True)
class PlacementOut:
    start: Annotated[int, "First memory slice, from 0."]
    size: Annotated[int, "Memory slices."]


@dataclass(frozen=True)
class DeviceHeldOut:
    node: str
    device: str
    uuid: Annotated[str, "Empty if the driver publishes none, as for MIG devices that it creates on demand."]
    parent_uuid: Annotated[str, "Of a MIG device's GPU, otherwise empty."]
    profile: Annotated[str, "Of a MIG device, otherwise empty."]
    placement: Annotated[PlacementOut | None, "Of a MIG device on its GPU."]


@dataclass(frozen=True)
class JobCostOut:
    to_date: Annotated[Money | None, COST_HELP]
    unpriced_gpu_hours: Annotated[HoursOrZero, UNPRICED_HELP]
    currency: str


@dataclass(frozen=True)
class CostToDateOut(JobCostOut):
    per_hour: Annotated[Money | None, "Decimal; null without a price."]


@dataclass(frozen=True)
class ObjectOut:
    apiVersion: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class AllocationOut:
    id: UUID
    phase: Annotated[str, OF_PHASES]
    outcome: Annotated[str | None, FieldInfo("Once ended.", choices=tuple(OUTCOMES))]
    reason: Annotated[str, "A reason of the portal, or of Kueue, unchanged; Kueue may add reasons."]
    message: str
    phase_until: Annotated[
        datetime | None, "When the phase ends without another event: leaving, starting, scheduled, or a pause."
    ]
    spec: Annotated[AllocationSpec, INLINE]
    hours: Annotated[
        DecimalString | None,
        "Decimal: requested time held, summed over evictions; null if an end date was requested.",
    ]
    hours_left: Annotated[
        DecimalString | None, "Decimal: what is left of hours; it counts down only while the slices are held."
    ]
    ends_at: Annotated[
        datetime | None, "The requested end date. With hours: null until held, and set again at each hold."
    ]
    give_up_at: Annotated[
        datetime | None, "When it ends if it is not held by then; after an eviction it waits as long again."
    ]
    team: str
    namespace: str
    requested_by: str
    labels: Mapping[str, str]
    constraints: Constraints
    sharing: Annotated[Sharing | None, "How pods share its devices, if they do."]
    claim: Annotated[Mapping[str, Any] | None, "Its custom device claim (DRA), as requested."]
    isolation: Annotated[str, FieldInfo("none: shared, not isolated.", choices=LEVELS)]
    isolation_note: Annotated[str, "Why it is none; otherwise empty."]
    node_share: Annotated[
        NodeShareOut | None,
        "CPU, memory and pods of its node that its pods may request in total; null until nodes report it.",
    ]
    warnings: Annotated[Sequence[ChoiceWarning], partial(output_of(ChoiceWarning, "WarningOut"), many=True)]
    recovered: Annotated[bool, "Created again from its lease after a restore of the database."]
    created_at: datetime
    held_at: Annotated[datetime | None, "When it was first held."]
    ended_at: datetime | None
    queue: QueuePosition | None
    slices: Annotated[
        int,
        "What it requests or holds: count, or the devices of its custom claim; for all devices of a node the GPUs that "
        "they come to, rounded up.",
    ]
    reservation: Literal["device", "node", "count"]
    devices: Sequence[DeviceHeldOut]
    past_devices: Annotated[Sequence[DeviceHeldOut], "Once ended: the devices of its last hold."]
    cost: CostToDateOut
    objects: Sequence[ObjectOut]


@dataclass(frozen=True)
class EvidenceOut:
    kind: str
    name: str
    resource_version: str


@dataclass(frozen=True)
class EventOut:
    id: int
    at: datetime
    recorded_at: datetime
    type: str
    from_phase: Annotated[str | None, OF_PHASES, lambda row: row.from_phase or None]
    to_phase: Annotated[str | None, OF_PHASES, lambda row: row.to_phase or None]
    reason: str
    message: str
    actor: str
    evidence: Annotated[Mapping[str, Any] | None, partial(output_of(EvidenceOut)), lambda row: row.evidence or None]


@dataclass(frozen=True)
class PlannedOut:
    """What is read from a manifest."""

    apiVersion: Annotated[str, itemgetter("apiVersion")]
    kind: Annotated[str, itemgetter("kind")]
    name: Annotated[str, lambda content: content["metadata"]["name"]]
    yaml: Annotated[str, to_yaml]


@dataclass(frozen=True)
class ManifestOut:
    """What is read from a manifest and whether it was applied."""

    content: Annotated[PlannedOut, INLINE, itemgetter(0)]
    applied: Annotated[bool, itemgetter(1)]


@dataclass(frozen=True)
class ManifestsOut:
    results: Sequence[ManifestOut]


def many(found: Details, places: Mapping[UUID, QueuePosition]) -> list[dict[str, Any]]:
    """Return the rows with their details and positions."""
    shown = found.by_id()
    return [_allocation(row, shown[row.pk], places.get(row.pk)) for row in found.rows]


def listed(row: Allocation) -> dict[str, Any]:
    """Return one row as lists show it, with its position in the portal's order."""
    batch = Batch()
    places, found = team_queue.read_positions([row], batch), details.read([row], batch)
    return many(found, places())[0]


def one(row: Allocation) -> dict[str, Any]:
    """Return one row; its position in the queue is asked of Kueue."""
    return _allocation(row, details.by_id([row])[row.pk], team_queue.position(row))


def _allocation(row: Allocation, detail: Detail, place: QueuePosition | None) -> dict[str, Any]:
    spec, found, time = spec_of_row.spec(row), selectors.isolation_of(row), spec_of_row.time(row)
    left = time.left_at(row.ended_at or clock.this_minute())
    answer = AllocationOut(
        id=row.pk,
        phase=row.phase,
        outcome=row.outcome or None,
        reason=row.reason,
        message=row.message,
        phase_until=row.phase_until,
        spec=spec,
        hours=hours(time.hours),
        hours_left=None if left is None else text(held_time.hours(left), HOURS_PLACES),
        ends_at=row.ends_at,
        give_up_at=time.waits_until,
        team=row.project.team.slug,
        namespace=row.project.namespace,
        requested_by=row.requested_by.username,
        labels=spec.labels.to_json(),
        constraints=spec.constraints,
        sharing=spec.sharing or None,
        claim=spec.claim.document if spec.claim else None,
        isolation=found.level,
        isolation_note=found.note,
        node_share=node_share(node_shares.node_share(row)),
        warnings=selectors.warnings(row, found),
        recovered=row.recovered,
        created_at=row.created_at,
        held_at=row.held_at,
        ended_at=row.ended_at,
        queue=place,
        slices=row.slices,
        reservation=selectors.reservation(row),
        devices=[_device(held) for held in detail.devices],
        past_devices=[_device(held) for held in detail.past_devices],
        cost=CostToDateOut(detail.charge.cost, detail.charge.unpriced, detail.currency, detail.per_hour),
        objects=[ObjectOut(KINDS[kind].api_version, kind, namespace, name) for kind, namespace, name in detail.objects],
    )
    return document(answer)


def hours(value: Decimal | None) -> DecimalString | None:
    return None if value is None else text(value, HOURS_PLACES)


def _device(held: HeldDevice) -> DeviceHeldOut:
    placement = PlacementOut(*held.placement) if held.placement else None
    return DeviceHeldOut(held.node, held.device, held.uuid, held.parent_uuid, held.profile, placement)
