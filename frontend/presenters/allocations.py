"""An allocation as a card, a row of a list, or a page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.urls import reverse

from allocations.capacity.node_shares import node_share
from allocations.connect.connection import USABLE
from allocations.domain import held_time
from allocations.domain.allocation_spec import LABELLED, Constraints, Labels, Sharing
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation as SliceIsolation
from allocations.domain.phases import RESERVING, Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, Transition
from allocations.queues.queue import QueuePosition
from allocations.requests import custom_claims
from allocations.requests.details import Detail, HeldDevice
from allocations.requests.selectors import isolation_of, reservation, warnings
from frontend.presenters import amounts, claims, offerings, phases
from frontend.presenters.phases import PhaseBadge
from frontend.presenters.presets import again_url
from portal.tenants.access import Permissions
from quotas.catalog.models import Isolation

UNTIL = {
    Phase.LEAVING: "Pods end",
    Phase.STARTING: "Waits for a device until",
    Phase.SCHEDULED: "Starts",
    Phase.QUEUED: "Queues again",
}
RUNNING = (*RESERVING, Phase.SUSPENDED)
TYPES = {
    "requested": "Requested",
    "end": "Release requested",
    "start_failed": "Start failed",
    "extended": "Extended",
    "retried": "Queues again",
    "recovered": "Recovered",
}


@dataclass(frozen=True)
class DeviceLine:
    """A held device; ``part`` says which part of which card a MIG device is, empty for a whole one."""

    node: str
    device: str
    uuid: str
    part: str


def _line(device: HeldDevice) -> DeviceLine:
    part = device.profile
    if device.placement:
        start, size = device.placement
        last = start + size - 1
        part += f" on memory slice {start}" if size == 1 else f" on memory slices {start} to {last}"
    if device.parent_uuid:
        part += f" of {device.parent_uuid}"
    return DeviceLine(device.node, device.device, device.uuid, part)


def _constraints(row: Allocation) -> str:
    """Return constraints and sharing as text; empty if there are none."""
    words = [name.replace("_", " ") for name in sorted(Constraints.from_json(row.constraints).to_json())]
    if sharing := Sharing.from_json(row.sharing).to_json():
        words.append("shared by pods: " + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in sharing.items()))
    return "; ".join(words)


@dataclass(frozen=True)
class Card:
    """Everything a template shows of one allocation; the booleans are what this person may do with it now.

    What only the page of one allocation shows is made when it is read.
    """

    row: Allocation
    id: str
    address: str
    badge: PhaseBadge
    slices: str
    place: str
    time: str
    cost: str
    per_hour: str
    detail: Detail
    can_release: bool
    can_extend: bool
    can_retry: bool
    can_connect: bool
    can_repeat: bool

    @property
    def is_running(self) -> bool:
        return self.row.phase in RUNNING

    @property
    def is_final(self) -> bool:
        return self.row.phase == Phase.ENDED

    @property
    def sentence(self) -> str:
        return self.row.message

    @property
    def until(self) -> str:
        return UNTIL.get(Phase(self.row.phase), "Until")

    @property
    def requested_hours(self) -> str:
        return "" if self.row.hours is None else held_time.in_words(self.row.hours)

    @property
    def gives_up_at(self) -> datetime | None:
        return _gives_up_at(self.row)

    @property
    def devices_named(self) -> bool:
        return reservation(self.row) == "device"

    @property
    def devices(self) -> list[DeviceLine]:
        return [_line(device) for device in self.detail.past_devices or self.detail.devices]

    @cached_property
    def _isolation(self) -> SliceIsolation:
        return isolation_of(self.row)

    @property
    def isolation(self) -> str:
        return offerings.ISOLATION[Isolation(self._isolation.level)]

    @property
    def isolation_note(self) -> str:
        return self._isolation.note

    @property
    def constraints(self) -> str:
        return _constraints(self.row)

    @property
    def again_url(self) -> str:
        """The request form filled with what an allocation that has ended requested."""
        return again_url(self.row)

    @property
    def nodes(self) -> list[str]:
        return list(dict.fromkeys(device.node for device in self.devices))

    @property
    def labelled(self) -> list[tuple[str, str]]:
        """Return the text fields that have a label, and the labels by which costs are grouped, if they are set."""
        found = [(each.info.label, value) for each in LABELLED if (value := getattr(self.row, each.name))]
        return [*found, *([("Labels", str(Labels.from_json(self.row.labels)))] if self.row.labels else [])]

    @property
    def node_share(self) -> str:
        return amounts.node_share(node_share(self.row))

    @property
    def pods(self) -> str:
        pods = node_share(self.row).pods
        return "1 pod" if pods == 1 else f"{pods} pods"

    @property
    def claim(self) -> str:
        return json.dumps(custom_claims.requested_document(self.row.claim), indent=2) if self.row.claim else ""

    @property
    def warnings(self) -> list[str]:
        return [f"{warned.detail} {warned.hint}" for warned in warnings(self.row, self._isolation)]


def cards(
    rows: Sequence[Allocation],
    details: Mapping[UUID, Detail],
    places: Mapping[UUID, QueuePosition],
    permissions: Permissions,
    now: datetime,
) -> list[Card]:
    start = reverse("allocations")
    return [_card(row, start, details[row.pk], places.get(row.pk), permissions, now) for row in rows]


def _card(
    row: Allocation,
    start: str,
    detail: Detail,
    place: QueuePosition | None,
    permissions: Permissions,
    now: datetime,
) -> Card:
    """Return one card; ``start`` is what the addresses of all allocations begin with."""
    team, owner = row.project.team_id, row.requested_by_id
    goes_on = row.desired == Allocation.Desired.HELD
    return Card(
        row=row,
        id=str(row.pk),
        address=f"{start}/{row.pk}",
        badge=phases.badge(row),
        slices=claims.slices(row.offering, row.count, CustomClaim.of_column(row.claim)),
        place=f"Position {place.position} of {place.of} in the team queue." if place else "",
        time=_time(row, now),
        cost=amounts.cost(detail.charge, detail.currency),
        per_hour=amounts.rate(detail.per_hour, detail.currency),
        detail=detail,
        can_release=goes_on and permissions.can("allocation.release", team, owner),
        can_extend=goes_on and permissions.can("allocation.extend", team, owner),
        can_retry=goes_on and row.needs_attention and permissions.can("allocation.release", team, owner),
        can_connect=row.phase in USABLE and permissions.can("allocation.connect", team),
        can_repeat=row.ended_at is not None
        and row.project.archived_at is None
        and permissions.can("allocation.request", team),
    )


def _time(row: Allocation, now: datetime) -> str:
    if row.ended_at is not None:
        return f"ended {amounts.span(now - row.ended_at)} ago"
    if row.starts_at is not None and row.starts_at > now:
        return f"starts in {amounts.span(row.starts_at - now)}"
    time = spec_of_row.time(row)
    left = row.ends_at - now if time.left is None and row.ends_at else time.left_at(now)
    if not left or left < held_time.NONE:
        return "time is up"
    return f"{amounts.span(left)} {'left' if row.ends_at else 'from start'}"


def _gives_up_at(row: Allocation) -> datetime | None:
    """Return until when it waits; None if it is held, or ends by something else first."""
    due = spec_of_row.time(row).due
    is_waiting = row.ended_at is None and row.desired == Allocation.Desired.HELD
    return due.at if is_waiting and due is not None and due.reason == held_time.GAVE_UP else None


@dataclass(frozen=True)
class Event:
    """One line of the timeline. ``badge`` is None if the phase did not change; ``evidence`` is the object that shows
    it.
    """

    at: datetime
    word: str
    badge: PhaseBadge | None
    reason: str
    message: str
    actor: str
    evidence: str


def event(transition: Transition, ended: PhaseBadge) -> Event:
    changed = transition.type in ("phase", "requested") and transition.to_phase != ""
    seen = ended if transition.to_phase == Phase.ENDED else phases.BADGES[Phase(transition.to_phase or Phase.QUEUED)]
    evidence = transition.evidence or {}
    revision = evidence.get("resource_version", "")
    return Event(
        at=transition.at,
        word=TYPES.get(transition.type) or seen.word,
        badge=seen if changed else None,
        reason=transition.reason,
        message=transition.message,
        actor=transition.actor,
        evidence=f"{evidence['kind']} {evidence['name']}" + (f", resourceVersion {revision}" if revision else "")
        if evidence.get("kind") and evidence.get("name")
        else "",
    )
