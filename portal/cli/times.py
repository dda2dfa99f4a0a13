"""Times: options for lengths and moments as people type them, and the end of an allocation in words."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

WAITING = ("scheduled", "queued", "starting", "suspended")
_LENGTH = re.compile(r"(?:(?P<days>\d{1,4})d)?(?:(?P<hours>\d{1,5})h)?(?:(?P<minutes>\d{1,6})m)?", re.ASCII)
_HOURS = re.compile(r"\d{1,6}(\.\d{1,6})?", re.ASCII)
_SECONDS = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)([smh])?", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600}


class Time(click.ParamType):
    """A time as ``read`` takes it from its text; it raises ValueError, and ``words`` say how the text is written."""

    def __init__(self, name: str, read: Callable[[str], Any], words: str) -> None:
        self.name, self._read, self._words = name, read, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError:
            return self.fail(f"'{value}' is no {self.name}; write it as {self._words}.", param, ctx)


def _length(text: str) -> timedelta:
    match = _LENGTH.fullmatch(text)
    if not text or match is None:
        raise ValueError
    return timedelta(**{unit: int(value) for unit, value in match.groupdict(default="0").items()})


def _some_hours(text: str) -> str:
    if not _HOURS.fullmatch(text) or not float(text):
        raise ValueError
    return text


def _moment(text: str) -> str:
    if "T" not in text or datetime.fromisoformat(text).tzinfo is None:
        raise ValueError
    return text


def _timeout(text: str) -> float:
    match = _SECONDS.fullmatch(text)
    if match is None:
        raise ValueError
    return float(match[1]) * _UNITS_S[match[2] or "s"]


def _seconds(text: str) -> float:
    if not (found := _timeout(text)):
        raise ValueError
    return found


LENGTH = Time("length", _length, "2d, 12h, 1d12h or 90m")
HOURS = Time("number of hours", _some_hours, "8 or 0.5")
MOMENT = Time("time with an offset", _moment, "2026-11-25T15:00:00Z")
SECONDS = Time("length", _seconds, "30s or 2m")
TIMEOUT = Time("length", _timeout, "600, 30s, 10m or 2h")


def moment(text: str | None) -> str:
    """Return a time of the API, to the second."""
    return text[:19].replace("T", " ") + "Z" if text else "-"


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
