"""What a request for slices may say."""

from decimal import Decimal
from typing import Any, ClassVar

from allocations.rules import LONGEST, MOST_SLICES, PRIORITIES
from allocations.services import Wish
from portal.api.strict import Amount, Body, Flag, Moment, Text, Whole

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

    not_offered: ClassVar = {
        "claim": "Own DRA claims are not offered yet. Ask for an offering that GET /offerings lists.",
        "job": NO_MODE_YET,
        "workspace": NO_MODE_YET,
    }


class ReleaseRequest(Body):
    reason = Text(required=False, default="", allow_blank=True, max_length=500)


class ExtendRequest(Body):
    hours = hours_field(required=True)


class Nothing(Body):
    """An empty object."""


def wish(values: dict[str, Any]) -> Wish:
    """The checked body as the service reads it."""
    constraints = values.pop("constraints", None) or {}
    return Wish(**values, **constraints)
