"""The sentence that says which part of a demo's history nobody recorded."""

from datetime import UTC, datetime

from quotas.metering import simulated


def simulated_line(start: datetime) -> str:
    """Return that what a window from ``start`` on shows is simulated, until when; empty if nothing of it is."""
    until = simulated.until(start)
    if until is None:
        return ""
    return f"Some of this history is simulated: before {until.astimezone(UTC):%F %H:%M} UTC no cluster was recorded."
