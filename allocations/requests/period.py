"""Checks the time of a request, and adds what is not given: the hours, and how long it waits. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from allocations.domain import held_time

MAX_DURATION = timedelta(days=366)
PLACE = Decimal("0.000001")


@dataclass(frozen=True)
class Period:
    """The time of an allocation. ``starts_at`` is None if it starts now.

    Either ``hours`` or ``ends_at`` is None. ``length`` is the time that it is held for, at most, in hours.
    """

    starts_at: datetime | None
    hours: Decimal | None
    ends_at: datetime | None
    give_up_at: datetime
    length: Fraction


Errors = dict[str, list[str]]
"""Sentences by field."""


def period(
    now: datetime,
    default_hours: int,
    default_wait: timedelta,
    *,
    hours: Decimal | None = None,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    give_up_at: datetime | None = None,
    give_up_after: Decimal | None = None,
) -> Period | Errors:
    """Return the time of the allocation, or the errors of its fields.

    If neither ``give_up_at`` nor ``give_up_after`` is given, it waits for ``default_wait`` after its start, and never
    beyond ``ends_at``.
    """
    errors: Errors = {}
    if hours is not None and ends_at is not None:
        errors["hours"] = ["Give hours or ends_at, not both."]
    if starts_at is not None and starts_at < now - timedelta(minutes=1):
        errors["starts_at"] = ["It is in the past; leave it out to start now."]
    if starts_at is not None and starts_at - now > MAX_DURATION:
        return {**errors, "starts_at": [f"It may start at most {MAX_DURATION.days} days from now."]}
    begin = starts_at if starts_at is not None and starts_at > now else now
    duration = None if ends_at is not None else Decimal(default_hours if hours is None else hours).quantize(PLACE)
    length = ends_at - begin if ends_at is not None else held_time.length(duration or Decimal(0))
    errors |= _length_errors(length, "hours" if ends_at is None else "ends_at")
    wait = begin + default_wait if ends_at is None else min(ends_at, begin + default_wait)
    if give_up_at is not None and give_up_after is not None:
        errors["give_up_after"] = ["Give give_up_at or give_up_after, not both."]
    if give_up_after is not None:
        wait = begin + held_time.length(give_up_after)
    if give_up_at is not None:
        errors |= _wait_errors(give_up_at - begin)
        wait = give_up_at
    if errors:
        return errors
    return Period(
        starts_at=begin if begin > now else None,
        hours=duration,
        ends_at=ends_at,
        give_up_at=wait,
        length=held_time.hours(length),
    )


def _length_errors(length: timedelta, field: str) -> Errors:
    if length <= timedelta(0):
        return {field: ["It ends before it begins; choose a later end."]}
    if length > MAX_DURATION:
        return {field: [f"The longest allocation is {MAX_DURATION.days} days ({MAX_DURATION.days * 24} hours)."]}
    return {}


def _wait_errors(wait: timedelta) -> Errors:
    if wait <= timedelta(0):
        return {"give_up_at": ["It is not after the start; choose a later time, or leave it out to wait a week."]}
    if wait > MAX_DURATION:
        return {"give_up_at": [f"It may wait for at most {MAX_DURATION.days} days after its start."]}
    return {}
