"""Request bodies for allocations."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.conf import settings

from allocations.domain import allocation_spec
from portal.api.http.strict import Body, Text
from portal.api.schemas.spec_fields import body_of, hours_field

NO_MODE_YET = "It is not offered yet. Use mode hold: run the job yourself with the label that /connect names."

AllocationBody = body_of(
    allocation_spec.AllocationRequest,
    unsupported={
        "job": NO_MODE_YET,
        "workspace": NO_MODE_YET,
    },
)


class ReleaseRequest(Body):
    reason = Text(required=False, default="", allow_blank=True, max_length=500)


class ExtendRequest(Body):
    hours = hours_field(required=True)


class Nothing(Body):
    """An empty object."""


def meaning(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a checked body asks for, with the defaults of what it leaves out."""
    asked = to_request(values)
    if asked.hours is None and asked.ends_at is None:
        asked = replace(asked, hours=Decimal(settings.DEFAULT_HOURS))
    return {**asked.to_json(), "hours": None if asked.hours is None else asked.hours.normalize()}


def to_request(values: dict[str, Any]) -> allocation_spec.AllocationRequest:
    """Return the checked body as an AllocationRequest."""
    return allocation_spec.AllocationRequest.from_json(values)
