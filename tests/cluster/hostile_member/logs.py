"""Finds errors in the portal's logs that no refusal of the attack explains. Pure."""

import re
from collections.abc import Collection, Iterator

BEGIN = re.compile(r"^\[?\d{4}-\d\d-\d\d")
"""First lines of entries: the portal's, gunicorn's and Celery's. Other lines belong to the entry above, as tracebacks
do.
"""
LEVEL = re.compile(r"\[(error|critical|ERROR|CRITICAL)\s*[\]/]|: (ERROR|CRITICAL)/")
NEVER_EXPLAINED = ("api.error", "WORKER TIMEOUT")
"""A server error in answer to any request is a defect."""


def entries(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if BEGIN.match(line) and lines:
            yield "\n".join(lines)
            lines = []
        lines.append(line)
    if lines:
        yield "\n".join(lines)


def unexplained(text: str, names: Collection[str]) -> list[str]:
    """Return errors, except those of work on the attacker's objects, which have one of ``names``."""
    return [
        entry
        for entry in entries(text)
        if LEVEL.search(entry.splitlines()[0])
        and (any(words in entry for words in NEVER_EXPLAINED) or not any(name in entry for name in names))
    ]
