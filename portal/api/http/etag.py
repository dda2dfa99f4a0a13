"""Optimistic concurrency of PUT and PATCH (RFC 9110 §13, RFC 6585 §3)."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db.models import Model
from rest_framework.request import Request

from portal.core.errors import NotVisible, Problem

Row = TypeVar("Row", bound=Model)


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
        return found

    return locked
