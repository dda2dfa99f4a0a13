"""The reader's time zone, which ``page.js`` keeps in a cookie; without it times are in UTC and say so."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

COOKIE = "timezone"
MAX_LENGTH = 64


def of_request(request: HttpRequest) -> ZoneInfo | None:
    """Return the zone that the cookie names, such as ``Europe/Berlin``; None if it names none."""
    name = request.COOKIES.get(COOKIE, "")
    if not name or len(name) > MAX_LENGTH:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def words(at: datetime, *, seconds: bool = False) -> str:
    """Return a time in the current zone: ``2026-11-25 16:28``; in UTC with its name."""
    local = _local(at)
    shown = f"{local:%Y-%m-%d %H:%M:%S}" if seconds else f"{local:%Y-%m-%d %H:%M}"
    return f"{shown} UTC" if timezone.get_current_timezone_name() == "UTC" else shown


def title(at: datetime) -> str:
    """Return a time to the second with its zone: ``2026-11-25 16:28:00 Europe/Berlin (UTC+01:00)``."""
    local = _local(at)
    name = timezone.get_current_timezone_name()
    offset = "" if name == "UTC" else f" (UTC{local.isoformat()[-6:]})"
    return f"{local:%Y-%m-%d %H:%M:%S} {name}{offset}"


def _local(at: datetime) -> datetime:
    """Return a time in the current zone, or as it is in the first and last hours of the calendar, which may have none
    there.
    """
    try:
        return timezone.localtime(at)
    except OverflowError:
        return at
