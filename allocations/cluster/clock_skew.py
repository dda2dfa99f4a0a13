"""Measures by how much the API server's clock is ahead of this process's, from the ``Date`` of its responses.

A ``Date`` has whole seconds, so a response bounds the difference to a second and its round trip. Responses at other
fractions of a second bound it more closely.
"""

import threading
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Skew:
    """By how many seconds the API server is ahead, and by how many that may be wrong."""

    seconds: float
    error: float


class SkewMeter:
    """Collects bounds of the difference; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bounds: tuple[float, float] | None = None

    def add(self, date: str, sent_at: datetime, received_at: datetime) -> None:
        """Take a response into account. One that contradicts the others begins anew, since a clock was set."""
        try:
            told = parsedate_to_datetime(date)
        except ValueError:
            return
        low, high = (told - received_at).total_seconds(), (told - sent_at).total_seconds() + 1
        with self._lock:
            before = self._bounds or (low, high)
            both = max(low, before[0]), min(high, before[1])
            self._bounds = both if both[0] <= both[1] else (low, high)

    def take(self) -> Skew | None:
        """Return what was measured since the last call; None if there was no response."""
        with self._lock:
            bounds, self._bounds = self._bounds, None
        return Skew(sum(bounds) / 2, (bounds[1] - bounds[0]) / 2) if bounds else None
