"""The hash chain of the audit log: each entry's digest covers the one before, so every change is detected.

Entries are written concurrently and commit in any order, so they are chained afterwards: `seal` gives unsealed entries
the next positions. Writing an entry waits for nobody; sealers wait for each other.
"""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.models import AuditEntry, AuditSeal

START = "0" * 64
BATCH = 1000


def digest(before: str, position: int, sealed_at: datetime, entry: AuditEntry) -> str:
    """Return the SHA-256, in hex, of the digest `before` and the canonical JSON of position and entry.

    Canonical: keys sorted, no space between them, ASCII, times in UTC with microseconds.
    """
    document = {"position": position, "sealed_at": _time(sealed_at), "entry": content(entry)}
    words = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}{words}".encode()).hexdigest()


def content(entry: AuditEntry) -> dict[str, Any]:
    """Return all fields of an entry."""
    names = ("id", "actor", "action", "target", "team", "project", "before", "after", "source", "request_id")
    return {"at": _time(entry.at), **{name: getattr(entry, name) for name in names}}


def seal() -> int:
    """Give every unsealed entry its position in the chain; return how many there were.

    Raises Retryable if another sealer holds the lock for too long.
    """
    if not AuditEntry.objects.filter(seal=None).exists():
        return 0
    sealed = 0
    while count := _seal_batch():
        sealed += count
    return sealed


def _seal_batch() -> int:
    with transaction.atomic(), advisory_lock("audit", "seal"):
        head = AuditSeal.objects.order_by("position").last()
        position, last, now = (head.position, head.digest, head.sealed_at) if head else (0, START, clock.now())
        now = max(now, clock.now())  # along the chain time never runs back, whatever the clocks of hosts say
        seals = []
        for entry in AuditEntry.objects.filter(seal=None).order_by("pk")[:BATCH]:
            position += 1
            last = digest(last, position, now, entry)
            seals.append(AuditSeal(position=position, entry=entry, sealed_at=now, digest=last))
        AuditSeal.objects.bulk_create(seals)
    return len(seals)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
