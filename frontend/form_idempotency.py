"""Idempotency of forms: a double click, a reload or a step back finds what exists already.

The form carries a signed key. The same form with the same values is one request; with other values it is another.
"""

import secrets
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core import signing

from allocations.domain.allocation_spec import AllocationRequest
from allocations.requests import services
from portal.http import idempotency
from portal.http.idempotency import Reply
from portal.tenants.models import User
from portal.tenants.repeated_requests import idempotent_reply

SALT = "frontend.form_idempotency"
ROUTE = "POST /request"


def new_key() -> str:
    return signing.dumps(secrets.token_hex(8), salt=SALT)


def valid_key(key: str) -> str:
    """Return the key, or a new one if the portal did not sign it."""
    try:
        signing.loads(key, salt=SALT)
    except signing.BadSignature:
        return new_key()
    return key


def act_once(user: User, route: str, key: str, content: Any, act: Callable[[], str]) -> str:
    """Return what ``act`` says; the form with this key and content acts once. Raises what ``act`` raises."""
    sent = idempotency.digest_of([key, content])
    reply = idempotent_reply(user, route, sent, content, lambda: Reply(200, act()), waits=True)
    return str(reply.body)


def idempotent_request(user: User, spec: AllocationRequest, key: str) -> tuple[UUID, bool]:
    """Request the form's allocation; return its id, and whether it existed before. Raises what ``services.request``
    raises.
    """
    content = spec.to_json()

    def effect() -> Reply:
        return Reply(201, str(services.request(user, spec).pk))

    sent = idempotency.digest_of([key, content])
    reply = idempotent_reply(user, ROUTE, sent, content, effect, waits=True)
    return UUID(reply.body), reply.is_replayed
