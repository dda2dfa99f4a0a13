"""A file that a process touches while it works, for the probes of containers that serve no HTTP."""

from pathlib import Path

from django.conf import settings


def touch() -> None:
    """Note that this process works now, in the file named by ``ALIVE_FILE``; does nothing without one."""
    if settings.ALIVE_FILE:
        Path(settings.ALIVE_FILE).touch()
