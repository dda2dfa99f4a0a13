"""`Idempotency-Key`: a POST repeated with the same key has its effect once and gets the same answer.

Follows draft-ietf-httpapi-idempotency-key-header-07: 422 for the same key with another body, 409 with Retry-After while
the first request runs. Whoever has lost the permission since is refused as for a first request. Bodies are the same if
they mean the same: values that are left out count as their defaults.

Every POST that creates something takes a key, except those that answer with a secret (`POST /tokens` and
`POST /credentials`): an answer is stored to be sent again, and a secret is never stored.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.strict import Body, read
from portal.core.errors import Invalid
from portal.http.idempotency import Reply
from portal.tenants.repeated_requests import idempotent_reply

P = ParamSpec("P")
View = Callable[Concatenate[Request, P], Response]
KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The same key again within 48 hours has no second effect, and gets the first answer.",
)
SENT_AGAIN = ("Location", "ETag")


def stated(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a checked body that are not null."""
    return {name: value for name, value in values.items() if value is not None}


def idempotent(
    body: type[Body] | None = None, meaning: Callable[[dict[str, Any]], Any] = stated
) -> Callable[[View[P]], View[P]]:
    """Return a decorator that lets a view honour `Idempotency-Key` on POST.

    `meaning` returns what a checked body means, with its defaults; without `body`, what was sent is compared.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def wrapper(request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
            if request.method != "POST" or "Idempotency-Key" not in request.headers:
                return view(request, *args, **kwargs)
            key = request.headers["Idempotency-Key"].strip().strip('"')
            if not 0 < len(key) <= 255:
                raise Invalid({"Idempotency-Key": ["Use 1 to 255 characters."]})
            content = meaning(read(body, request)) if body else request.data
            answered: list[Response] = []

            def effect() -> Reply:
                answered.append(answer := view(request, *args, **kwargs))
                headers = {name: answer[name] for name in SENT_AGAIN if name in answer}
                return Reply(answer.status_code, json.loads(JSONRenderer().render(answer.data) or b"null"), headers)

            route = f"POST {request.path}"
            reply = idempotent_reply(current_user(request), route, key, content, effect)
            if answered:
                return answered[0]
            return Response(reply.body, status=reply.status, headers={**reply.headers, "Idempotent-Replayed": "true"})

        return wrapper

    return decorate
