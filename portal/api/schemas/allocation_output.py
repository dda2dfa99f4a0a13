"""An allocation, its events and manifests in REST answers (docs/reference/api.md).

The serializers describe the answers in the OpenAPI schema; the answers themselves are plain dictionaries.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, get_args
from uuid import UUID

from rest_framework import serializers

from allocations.capacity import node_shares
from allocations.cluster.kinds import KINDS
from allocations.connect.connection import Connection
from allocations.domain import held_time
from allocations.domain.allocation_spec import AllocationSpec, Constraints, Sharing
from allocations.domain.documents import fields_of
from allocations.domain.isolation import LEVELS, Isolation
from allocations.domain.phases import DERIVED, REACHED
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, Transition
from allocations.queues import queue as team_queue
from allocations.queues.queue import QueuePosition
from allocations.requests import details, selectors
from allocations.requests.advice import WarningReason
from allocations.requests.details import Detail, Details, HeldDevice
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, amount, cost_to_date
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.spec_fields import is_plain, output_fields, output_of
from portal.core import clock
from portal.core.money import HOURS_PLACES, text
from portal.core.reading import Batch
from portal.yaml_text import to_yaml

PHASES, OUTCOMES = list(DERIVED), list(REACHED)
WARNING_REASONS = get_args(WarningReason)
PLAIN = tuple(each.name for each in fields_of(AllocationSpec) if is_plain(each))


class QueuePositionOut(serializers.Serializer):
    position = serializers.IntegerField(help_text="From 1.")
    of = serializers.IntegerField()


class PlacementOut(serializers.Serializer):
    start = serializers.IntegerField(help_text="First memory slice, from 0.")
    size = serializers.IntegerField(help_text="Memory slices.")


class DeviceHeldOut(serializers.Serializer):
    node = serializers.CharField()
    device = serializers.CharField()
    uuid = serializers.CharField(
        help_text="Empty if the driver publishes none, as for MIG devices that it creates on demand."
    )
    parent_uuid = serializers.CharField(help_text="Of a MIG device's GPU, otherwise empty.")
    profile = serializers.CharField(help_text="Of a MIG device, otherwise empty.")
    placement = PlacementOut(allow_null=True, help_text="Of a MIG device on its GPU.")


class CostToDateOut(serializers.Serializer):
    to_date = DecimalText(allow_null=True, help_text=COST_HELP)
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    per_hour = DecimalText(allow_null=True, help_text="Decimal; null without a price.")
    currency = serializers.CharField()


class ObjectOut(serializers.Serializer):
    apiVersion = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class WarningOut(serializers.Serializer):
    reason = serializers.ChoiceField(WARNING_REASONS)
    detail = serializers.CharField()
    hint = serializers.CharField()


class AllocationOut(serializers.Serializer):
    id = serializers.UUIDField()
    phase = serializers.ChoiceField(PHASES)
    outcome = serializers.ChoiceField(OUTCOMES, allow_null=True, help_text="Once ended.")
    reason = serializers.CharField(help_text="A reason of the portal, or of Kueue, unchanged; Kueue may add reasons.")
    message = serializers.CharField()
    phase_until = serializers.DateTimeField(
        allow_null=True,
        help_text="When the phase ends without another event: leaving, starting, scheduled, or a pause.",
    )
    team = serializers.CharField()
    namespace = serializers.CharField()
    requested_by = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField(allow_blank=True))
    constraints = output_of(Constraints)()
    sharing = output_of(Sharing)(allow_null=True, help_text="How pods share its devices, if they do.")
    claim = JsonObject(allow_null=True, help_text="Its custom device claim (DRA), as requested.")
    isolation = serializers.ChoiceField(LEVELS, help_text="none: shared, not isolated.")
    isolation_note = serializers.CharField(help_text="Why it is none; otherwise empty.")
    node_share = NodeShareOut(
        allow_null=True,
        help_text="CPU, memory and pods of its node that its pods may request in total; null until nodes report it.",
    )
    warnings = WarningOut(many=True)
    recovered = serializers.BooleanField(help_text="Created again from its lease after a restore of the database.")
    created_at = serializers.DateTimeField()
    hours = DecimalText(
        allow_null=True,
        help_text="Decimal: requested time held, summed over evictions; null if an end date was requested.",
    )
    hours_left = DecimalText(
        allow_null=True, help_text="Decimal: what is left of hours; it counts down only while the slices are held."
    )
    ends_at = serializers.DateTimeField(
        allow_null=True, help_text="The requested end date. With hours: null until held, and set again at each hold."
    )
    give_up_at = serializers.DateTimeField(
        allow_null=True, help_text="When it ends if it is not held by then; after an eviction it waits as long again."
    )
    held_at = serializers.DateTimeField(allow_null=True, help_text="When it was first held.")
    ended_at = serializers.DateTimeField(allow_null=True)
    queue = QueuePositionOut(allow_null=True)
    slices = serializers.IntegerField(
        help_text="What it requests or holds: count, or the devices of its custom claim; for all devices of a node the "
        "GPUs that they come to, rounded up."
    )
    reservation = serializers.ChoiceField(["device", "node", "count"])
    devices = DeviceHeldOut(many=True)
    past_devices = DeviceHeldOut(many=True, help_text="Once ended: the devices of its last hold.")
    cost = CostToDateOut()
    objects = ObjectOut(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {**output_fields(AllocationSpec), **super().get_fields()}


class EvidenceOut(serializers.Serializer):
    kind = serializers.CharField()
    name = serializers.CharField()
    resource_version = serializers.CharField()


class EventOut(serializers.Serializer):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    recorded_at = serializers.DateTimeField()
    type = serializers.CharField()
    from_phase = serializers.ChoiceField(PHASES, allow_null=True)
    to_phase = serializers.ChoiceField(PHASES, allow_null=True)
    reason = serializers.CharField()
    message = serializers.CharField()
    actor = serializers.CharField()
    evidence = EvidenceOut(allow_null=True)


class PlannedOut(serializers.Serializer):
    apiVersion = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    yaml = serializers.CharField()


class ManifestOut(PlannedOut):
    applied = serializers.BooleanField()


class ManifestsOut(serializers.Serializer):
    results = ManifestOut(many=True)


class LabelOut(serializers.Serializer):
    key = serializers.CharField()
    value = serializers.CharField()


class ConnectionOut(serializers.Serializer):
    label = LabelOut()  # type: ignore[assignment]  # a field of that name, not the option
    pod_yaml = serializers.CharField()
    job_yaml = serializers.CharField()
    pytorch_yaml = serializers.CharField()
    deployment_yaml = serializers.CharField()
    kubectl = serializers.CharField(help_text="Shell lines.")
    kubeconfig = serializers.CharField()
    expires_at = serializers.DateTimeField()


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
    asked, found = spec_of_row.spec(row), selectors.isolation_of(row)
    return {
        "id": str(row.pk),
        "phase": row.phase,
        "outcome": row.outcome or None,
        "reason": row.reason,
        "message": row.message,
        "phase_until": row.phase_until,
        **{name: getattr(asked, name) for name in PLAIN},
        **_time(row),
        "team": row.project.team.slug,
        "namespace": row.project.namespace,
        "requested_by": row.requested_by.username,
        "labels": asked.labels.to_json(),
        "constraints": vars(asked.constraints),
        "sharing": vars(asked.sharing) if asked.sharing else None,
        "claim": asked.claim.document if asked.claim else None,
        **isolation(found),
        "node_share": node_share(node_shares.node_share(row)),
        "warnings": [vars(warned) for warned in selectors.warnings(row, found)],
        "recovered": row.recovered,
        "created_at": row.created_at,
        "held_at": row.held_at,
        "ended_at": row.ended_at,
        "queue": place._asdict() if place else None,
        "slices": row.slices,
        "reservation": selectors.reservation(row),
        "devices": [_device(held) for held in detail.devices],
        "past_devices": [_device(held) for held in detail.past_devices],
        "cost": {**cost_to_date(detail.charge, detail.currency), "per_hour": amount(detail.per_hour)},
        "objects": [
            {"apiVersion": KINDS[kind].api_version, "kind": kind, "namespace": namespace, "name": name}
            for kind, namespace, name in detail.objects
        ],
    }


def _time(row: Allocation) -> dict[str, Any]:
    time = spec_of_row.time(row)
    left = time.left_at(row.ended_at or clock.this_minute())
    return {
        "hours": hours(time.hours),
        "hours_left": None if left is None else text(held_time.hours(left), HOURS_PLACES),
        "ends_at": row.ends_at,
        "give_up_at": time.waits_until,
    }


def hours(value: Decimal | None) -> str | None:
    return None if value is None else text(value, HOURS_PLACES)


def _device(held: HeldDevice) -> dict[str, Any]:
    placement = dict(zip(("start", "size"), held.placement, strict=True)) if held.placement else None
    return {**vars(held), "placement": placement}


def isolation(found: Isolation) -> dict[str, str]:
    return {"isolation": found.level, "isolation_note": found.note}


def events(rows: Iterable[Transition]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.pk,
            "at": row.at,
            "recorded_at": row.recorded_at,
            "type": row.type,
            "from_phase": row.from_phase or None,
            "to_phase": row.to_phase or None,
            "reason": row.reason,
            "message": row.message,
            "actor": row.actor,
            "evidence": row.evidence or None,
        }
        for row in rows
    ]


def manifest(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": content["apiVersion"],
        "kind": content["kind"],
        "name": content["metadata"]["name"],
        "yaml": to_yaml(content),
    }


def manifests(row: Allocation) -> list[dict[str, Any]]:
    return [{**manifest(content), "applied": applied} for content, applied in selectors.manifests(row)]


def connection(access: Connection) -> dict[str, Any]:
    return {
        "label": vars(access.label),
        "pod_yaml": access.pod_yaml,
        "job_yaml": access.job_yaml,
        "pytorch_yaml": access.pytorch_yaml,
        "deployment_yaml": access.deployment_yaml,
        "kubectl": access.kubectl,
        "kubeconfig": access.kubeconfig,
        "expires_at": access.expires_at,
    }
