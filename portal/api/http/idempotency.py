"""`Idempotency-Key`: a POST repeated with the same key has its effect once and the same answer twice.

As draft-ietf-httpapi-idempotency-key-header-07 says: 422 for the same key with another body, 409 while the
first runs. Keys belong to one person and route and live `KEPT`. The answer is stored in the transaction of
the effect, so there is never one without the other; a refused request stores nothing and may be sent again.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.db import connection, transaction
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import person
from portal.api.models import IdempotentReply
from portal.core import clock
from portal.core.errors import Invalid, Problem, Refused
from portal.core.locks import lock_id

P = ParamSpec("P")
View = Callable[Concatenate[Request, P], Response]
KEPT = timedelta(hours=48)


class KeyReused(Problem):
    status = 422
    reason = "key_reused"
    title = "The key belongs to another request"


def idempotent(view: View[P]) -> View[P]:
    """Honour `Idempotency-Key` on POST; without one the view runs as it is."""

    @wraps(view)
    def wrapper(request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        if request.method != "POST" or "Idempotency-Key" not in request.headers:
            return view(request, *args, **kwargs)
        key = request.headers["Idempotency-Key"].strip().strip('"')
        if not 0 < len(key) <= 255:
            raise Invalid({"Idempotency-Key": ["Use 1 to 255 characters."]})
        with transaction.atomic():
            return _once(request, key, lambda: view(request, *args, **kwargs))

    return wrapper


def _once(request: Request, key: str, effect: Callable[[], Response]) -> Response:
    name = {"user_id": person(request).pk, "route": f"POST {request.path}", "key": key}
    body_digest = _digest(request.data)
    if not _lock(*map(str, name.values())):
        raise Refused("in_progress", "The first request with this key still runs.", "Send it again in a moment.")
    stored = IdempotentReply.objects.filter(**name).first()
    if stored is not None:
        if stored.body_digest != body_digest:
            raise KeyReused("This key was used with another body.", hint="Use a new key for a new request.")
        return Response(stored.body, status=stored.status, headers={"Idempotent-Replayed": "true"})
    response = effect()
    if response.status_code < 400:
        body = json.loads(JSONRenderer().render(response.data) or b"null")
        IdempotentReply.objects.create(
            **name, body_digest=body_digest, status=response.status_code, body=body, created_at=clock.now()
        )
    return response


def purge() -> int:
    """Forget answers older than `KEPT`; returns how many."""
    return IdempotentReply.objects.filter(created_at__lt=clock.now() - KEPT).delete()[0]


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()


def _lock(*name: str) -> bool:
    """Take the key until the transaction ends, or say at once that another request has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_id("idempotency", *name)])
        return bool(cursor.fetchone()[0])
