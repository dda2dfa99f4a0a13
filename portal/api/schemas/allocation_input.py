"""What a request for slices may say."""

from decimal import Decimal
from typing import Any, ClassVar

from rest_framework import serializers

from allocations.domain import allocation_spec
from allocations.domain.admission import PRIORITIES
from allocations.requests.rules import LONGEST, MOST_SLICES
from portal.api.http.strict import Amount, Body, Flag, Moment, Text, Whole
from portal.api.schemas.claim_input import ClaimField

NO_MODE_YET = "It is not offered yet. Use mode hold: run the job yourself with the label that /connect names."
MOST_HOURS = LONGEST.days * 24
SHORTEST_HOURS = Decimal("0.000001")


def hours_field(required: bool) -> Amount:
    words = f"Give a number above 0, at most {MOST_HOURS}."
    return Amount(
        max_digits=12,
        decimal_places=6,
        min_value=SHORTEST_HOURS,
        max_value=Decimal(MOST_HOURS),
        required=required,
        allow_null=not required,
        error_messages={"min_value": words, "max_value": words},
        help_text=f"Above 0, at most {MOST_HOURS}.",
    )


class Constraints(Body):
    spread = Flag(default=False, help_text="Slices by DRA may be on several nodes. By device plugin they may anyway.")
    same_gpu = Flag(default=False, help_text="All slices on one GPU.")
    same_pcie_root = Flag(default=False, help_text="All on GPUs of one PCIe root.")
    same_clique = Flag(default=False, help_text="All in one NVLink clique (node label nvidia.com/gpu.clique).")
    distinct_gpus = Flag(default=False, help_text="Each slice on a GPU of its own.")


class Sharing(Body):
    strategy = Text(help_text="TimeSlicing or MPS.")
    interval = Text(required=False, allow_null=True, help_text="Of TimeSlicing: Default, Short, Medium or Long.")
    active_thread_percentage = Whole(required=False, allow_null=True, help_text="Of MPS, 0 to 100.")
    pinned_memory_limit = Text(required=False, allow_null=True, help_text="Of MPS, e.g. 10Gi.")
    per_device_pinned_memory_limit = serializers.DictField(
        child=Text(), required=False, allow_null=True, help_text="Of MPS, by the device's index in the claim."
    )


class AllocationRequest(Body):
    project = Text(help_text="Slug.")
    offering = Text(help_text="As GET /offerings lists it, e.g. h100/whole.")
    count = Whole(default=1, help_text=f"Slices, 1 to {MOST_SLICES}.")
    mode = Text(default="hold", help_text="hold.")
    name = Text(required=False, default="", allow_blank=True, help_text="DNS label, unique in the project; else made.")
    hours = hours_field(required=False)
    starts_at = Moment(required=False, allow_null=True, help_text="Now, if not given.")
    ends_at = Moment(required=False, allow_null=True, help_text="Instead of hours; neither means 8 hours.")
    priority = Text(default="normal", help_text=f"{', '.join(PRIORITIES)}.")
    purpose = Text(default="", allow_blank=True, max_length=500)
    requeue = Flag(default=True, help_text="Queue again after an eviction.")
    constraints = Constraints(required=False, allow_null=True)
    sharing = Sharing(required=False, allow_null=True, help_text="How pods share its devices; whole and MIG by DRA.")

    claim = ClaimField(required=False, allow_null=True)

    not_offered: ClassVar = {
        "job": NO_MODE_YET,
        "workspace": NO_MODE_YET,
    }


class ReleaseRequest(Body):
    reason = Text(required=False, default="", allow_blank=True, max_length=500)


class ExtendRequest(Body):
    hours = hours_field(required=True)


class Nothing(Body):
    """An empty object."""


def wish(values: dict[str, Any]) -> allocation_spec.AllocationRequest:
    """The checked body as the service reads it."""
    return allocation_spec.AllocationRequest.from_json(values)
