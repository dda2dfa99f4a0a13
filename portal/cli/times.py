"""Times of allocations: lengths as people type them, and an end in words."""

import re
from datetime import timedelta
from typing import Any

import click

from portal.cli.output import moment

WAITING = ("scheduled", "queued", "starting", "suspended")
_LENGTH = re.compile(r"(?:(?P<days>\d{1,4})d)?(?:(?P<hours>\d{1,5})h)?(?:(?P<minutes>\d{1,6})m)?", re.ASCII)


def length(text: str) -> timedelta:
    """Return a length such as ``2d``, ``12h``, ``1d12h`` or ``90m``. Raises click.BadParameter."""
    match = _LENGTH.fullmatch(text)
    if not text or match is None:
        raise click.BadParameter(f"'{text}' is no length; write it as 2d, 12h, 1d12h or 90m.")
    return timedelta(**{unit: int(value) for unit, value in match.groupdict(default="0").items()})


def in_hours(length: timedelta) -> str:
    """Return a length as the hours of a request."""
    return hours(f"{length / timedelta(hours=1):.6f}")


def hours(text: str) -> str:
    """Return hours of the API without zeros at their end."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def end(row: dict[str, Any]) -> str:
    """Return when an allocation ended or ends; until it is held, how many hours are left."""
    if row["ended_at"] or row["ends_at"]:
        return moment(row["ended_at"] or row["ends_at"])
    return f"{hours(row['hours_left'])} h from held"


def requested(row: dict[str, Any]) -> str:
    """Return the requested time of an allocation or a preview: ``8 h held``, or the date."""
    return f"{hours(row['hours'])} h held" if row["hours"] else f"until {moment(row['ends_at'])}"


def waits(row: dict[str, Any]) -> bool:
    """Return whether an allocation waits to be held, so that its give_up_at counts."""
    return bool(row["give_up_at"]) and row["phase"] in WAITING
