"""`Idempotency-Key`: a POST repeated with the same key has its effect once and gets the same answer.

Follows draft-ietf-httpapi-idempotency-key-header-07: 422 for the same key with another body, 409 while the first
request runs.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.core.errors import Invalid
from portal.http.idempotency import Reply, reply_once

P = ParamSpec("P")
View = Callable[Concatenate[Request, P], Response]


def idempotent(view: View[P]) -> View[P]:
    """Decorate a view so that it honours `Idempotency-Key` on POST."""

    @wraps(view)
    def wrapper(request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        if request.method != "POST" or "Idempotency-Key" not in request.headers:
            return view(request, *args, **kwargs)
        key = request.headers["Idempotency-Key"].strip().strip('"')
        if not 0 < len(key) <= 255:
            raise Invalid({"Idempotency-Key": ["Use 1 to 255 characters."]})
        answered: list[Response] = []

        def effect() -> Reply:
            answered.append(view(request, *args, **kwargs))
            return Reply(answered[0].status_code, json.loads(JSONRenderer().render(answered[0].data) or b"null"))

        reply = reply_once(current_user(request).pk, f"POST {request.path}", key, request.data, effect)
        if answered:
            return answered[0]
        return Response(reply.body, status=reply.status, headers={"Idempotent-Replayed": "true"})

    return wrapper
