"""Idempotency of the request form: sent twice by a double click, a reload or a step back, it makes one allocation.

The form carries a key, signed with the time it was made. A request without a name gets one computed from the key and
from the request, so that the same form always has the same name, and the database refuses the second row.
"""

import hashlib
import secrets
from dataclasses import replace
from datetime import datetime

from django.core import signing

from allocations.cluster import names
from allocations.domain.allocation_spec import AllocationRequest
from allocations.models import Allocation
from allocations.requests import selectors
from portal.core import clock
from portal.tenants.models import User

SALT = "frontend.once"


def new_key() -> str:
    return signing.dumps([secrets.token_hex(8), clock.now().isoformat()], salt=SALT)


def valid_key(key: str) -> str:
    """The key, or a new one where it is none of ours: then nothing was asked with it before."""
    return key if made_at(key) else new_key()


def made_at(key: str) -> datetime | None:
    """When the form was made, or None when the key is not ours."""
    try:
        return datetime.fromisoformat(signing.loads(key, salt=SALT)[1])
    except (signing.BadSignature, ValueError, IndexError, TypeError):
        return None


def with_name(spec: AllocationRequest, key: str) -> AllocationRequest:
    """The request with its name, made from the key if a person gave none."""
    if spec.name:
        return spec
    digest = hashlib.sha256(f"{key} {spec}".encode()).hexdigest()
    return replace(spec, name=names.suggest(spec.offering, digest[:6]))


def find_existing(user: User, spec: AllocationRequest, key: str) -> Allocation | None:
    """The allocation that this form has made already, if it has."""
    since = made_at(key)
    if since is None:
        return None
    return (
        selectors.visible(user)
        .filter(
            project__slug=spec.project,
            name=spec.name,
            offering__key=spec.offering,
            count=spec.count,
            requested_by=user,
            created_at__gte=since,
        )
        .first()
    )
