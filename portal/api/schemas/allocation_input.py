"""Request bodies for allocations."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings

from allocations.domain import allocation_spec, held_time
from portal.api.http.strict import Body, Text
from portal.api.schemas.spec_fields import body_of, hours_field

NO_MODE_YET = "It is not offered yet. Use mode hold: run the job yourself with the label that /connect names."

AllocationBody = body_of(
    allocation_spec.AllocationRequest,
    unsupported={
        "job": NO_MODE_YET,
        "workspace": NO_MODE_YET,
    },
    exclusive=(("hours", "ends_at"), ("give_up_at", "give_up_after")),
)


class ReleaseRequest(Body):
    reason = Text(required=False, default="", allow_blank=True, max_length=500)


class ExtendRequest(Body):
    hours = hours_field(required=True)


class EmptyBody(Body):
    """An empty object."""


def meaning(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a checked body asks for: with the default of its hours, and without a wait that is the default."""
    asked = to_request(values)
    if asked.hours is None and asked.ends_at is None:
        asked = replace(asked, hours=Decimal(settings.DEFAULT_HOURS))
    if _waits_by_default(asked):
        asked = replace(asked, give_up_at=None, give_up_after=None)
    return {**asked.to_json(), "hours": None if asked.hours is None else asked.hours.normalize()}


def _waits_by_default(asked: allocation_spec.AllocationRequest) -> bool:
    """Return whether the body alone says that it waits as long as it would if it did not say so.

    What starts now and has an end waits until then or for the default time, whichever is shorter when the request
    comes. The body does not tell which.
    """
    wait = None if asked.give_up_after is None else held_time.length(asked.give_up_after)
    default = timedelta(hours=settings.GIVE_UP_AFTER_HOURS)
    if asked.starts_at is None:
        return wait == default and asked.ends_at is None and asked.give_up_at is None
    if asked.give_up_at is not None:
        if wait is not None:
            return False  # a request cannot say both
        wait = asked.give_up_at - asked.starts_at
    return wait == (default if asked.ends_at is None else min(default, asked.ends_at - asked.starts_at))


def to_request(values: dict[str, Any]) -> allocation_spec.AllocationRequest:
    """Return the checked body as an AllocationRequest."""
    return allocation_spec.AllocationRequest.from_json(values)
