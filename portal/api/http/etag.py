"""Optimistic concurrency of PUT and PATCH, and lists that did not change (RFC 9110 §13, RFC 6585 §3)."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import Model
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.core import clock
from portal.core.errors import NotVisible, Problem
from portal.core.reading import digest_of

Row = TypeVar("Row", bound=Model)


UNCHANGED = OpenApiResponse(description="Not changed since the answer with that ETag.")
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The ETag of an earlier answer."
)


class PreconditionRequired(Problem):
    status = 428
    reason = "if_match_missing"
    title = "If-Match is required"


class PreconditionFailed(Problem):
    status = 412
    reason = "if_match_stale"
    title = "Someone changed it meanwhile"


def version(*values: str | int | bool | Sequence[str] | None) -> str:
    """Return a version for a row that stores none: a digest of the values that can be changed."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def entity_tag(version: int | str) -> str:
    """Return the strong entity tag of a row's version."""
    return f'"{version}"'


def require_match(request: Request, version: int | str) -> None:
    """Raise 428 if `If-Match` is missing and 412 if it names another version; `*` matches every version."""
    given = request.headers.get("If-Match", "").strip()
    if not given:
        raise PreconditionRequired(
            "A change must say which version it changes.", hint="Send If-Match with the ETag of the last GET."
        )
    if given != "*" and entity_tag(version) not in [tag.strip() for tag in given.split(",")]:
        raise PreconditionFailed("What you read is no longer current.", hint="GET it again and repeat the change.")


def of_list(request: Request, roles: Mapping[int, str], *parts: Any) -> str:
    """Return the weak entity tag of a list made from `parts`, for this caller with these roles, in this minute."""
    user = current_user(request)
    minute = clock.this_minute().isoformat()
    return f'W/"{digest_of(user.pk, user.platform_role, roles, request.get_full_path(), minute, parts)}"'


def of_body(request: Request, *parts: Any) -> str:
    """Return the weak entity tag of an answer made of `parts`: the same while the same is answered."""
    return f'W/"{digest_of(request.get_full_path(), parts)}"'


def unless_known(request: Request, tag: str, answer: Callable[[], Response]) -> Response:
    """Return the answer with its tag; 304 and no body if the caller has it. Whoever keeps it asks before each use."""
    known = [one.strip() for one in request.headers.get("If-None-Match", "").split(",")]
    response = Response(status=304) if tag in known else answer()
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    return response


def lock(request: Request, version: Callable[[Row], int | str]) -> Callable[[Row], Row]:
    """Return a `portal.core.locks.RowLock` that reads the row for update and requires a matching `If-Match`.

    Writers that only refer to the row do not wait for the lock. Raises NotVisible if the row is gone, and what
    `require_match` raises.
    """

    def locked(row: Row) -> Row:
        found = type(row)._default_manager.select_for_update(no_key=True).filter(pk=row.pk).first()
        if found is None:
            raise NotVisible(f"{row}")
        require_match(request, version(found))
        if version(found) != version(row):  # what is written was compared with the row as it was read
            raise PreconditionFailed("Someone changed it at this moment.", hint="Send it again.")
        return found

    return locked
