"""Idempotency of repeated requests: one effect, and the same reply each time.

A reply is stored in the transaction of its effect, so neither exists without the other. A refused request stores
nothing and may be repeated. Keys belong to one person and route and are kept for `KEPT`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from portal.core import clock
from portal.core.errors import Problem, Refused
from portal.core.locks import advisory_lock, lock_id
from portal.core.models import IdempotentReply

KEPT = timedelta(hours=48)


class KeyReused(Problem):
    status = 422
    reason = "key_reused"
    title = "The key belongs to another request"


class InProgress(Refused):
    """409: the first request with the key still runs."""

    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("in_progress", "The first request with this key still runs.", "Send it again in a moment.")


@dataclass(frozen=True)
class Reply:
    """A stored reply. ``body`` is JSON; ``is_replayed`` if the effect happened before."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    is_replayed: bool = False


@dataclass(frozen=True)
class Permission:
    """What tells whether a person may still have a reply: `noting` yields a list of what the block requires of
    permission, and `require_again` raises unless the person still has it.
    """

    noting: Callable[[], AbstractContextManager[list[Any]]]
    require_again: Callable[[list[Any]], None]


def idempotent_reply(
    user: int,
    route: str,
    key: str,
    content: Any,
    effect: Callable[[], Reply],
    *,
    permission: Permission,
    waits: bool = False,
) -> Reply:
    """Return the reply of `effect`, which is called only for the first request with this key.

    `content` is what the body means: raises KeyReused for a key that was used with another one. Raises what
    `permission` raises for a stored reply that the person may no longer have. While the first request runs, the second
    is InProgress, or with `waits` gets the first one's reply.
    """
    name = {"user_id": user, "route": route, "key": key}
    with transaction.atomic():
        _lock_key(*map(str, name.values()), waits=waits)
        digest = digest_of(content)
        stored = IdempotentReply.objects.filter(**name).first()
        if stored is not None:
            if stored.body_digest != digest:
                raise KeyReused("This key was used with another body.", hint="Use a new key for a new request.")
            permission.require_again(stored.asked)
            return Reply(stored.status, stored.body, stored.headers, is_replayed=True)
        with permission.noting() as asked:
            reply = effect()
        if reply.status < 400:
            shown = {"status": reply.status, "body": reply.body, "headers": dict(reply.headers)}
            IdempotentReply.objects.create(**name, **shown, body_digest=digest, asked=asked, created_at=clock.now())
        return reply


def digest_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def purge() -> int:
    """Delete replies older than `KEPT`; return how many."""
    return IdempotentReply.objects.filter(created_at__lt=clock.now() - KEPT).delete()[0]


def _lock_key(*name: str, waits: bool) -> None:
    """Lock the key until the transaction ends."""
    if waits:
        with advisory_lock("idempotency", *name):
            return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_id("idempotency", *name)])
        if not cursor.fetchone()[0]:
            raise InProgress
