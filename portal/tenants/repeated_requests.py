"""Idempotent replies (`portal.http.idempotency`), which nobody gets who has lost the permission since."""

from collections.abc import Callable
from functools import partial
from typing import Any

from portal.http import idempotency
from portal.http.idempotency import Permission, Reply
from portal.tenants import access
from portal.tenants.models import User


def idempotent_reply(
    user: User,
    route: str,
    key: str,
    content: Any,
    effect: Callable[[], Reply],
    *,
    waits: bool = False,
) -> Reply:
    """Return what `portal.http.idempotency.idempotent_reply` returns; raises also what `access.require` raises."""
    permission = Permission(access.noting, partial(access.require_again, user))
    return idempotency.idempotent_reply(user.pk, route, key, content, effect, permission=permission, waits=waits)
