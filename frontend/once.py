"""A form sent twice asks once: a double click, a reload or a step back finds the allocation that is there already.

The form carries a key, signed with the time it was made. A request without a name gets one computed from the key and
from what is asked, so that the same form asks for the same name, and the database refuses the second row.
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


def known(key: str) -> str:
    """The key, or a new one where it is none of ours: then nothing was asked with it before."""
    return key if made_at(key) else new_key()


def made_at(key: str) -> datetime | None:
    """When the form was made, or None when the key is not ours."""
    try:
        return datetime.fromisoformat(signing.loads(key, salt=SALT)[1])
    except (signing.BadSignature, ValueError, IndexError, TypeError):
        return None


def named(wish: AllocationRequest, key: str) -> AllocationRequest:
    """The wish with its name, made for it if a person gave none."""
    if wish.name:
        return wish
    digest = hashlib.sha256(f"{key} {wish}".encode()).hexdigest()
    return replace(wish, name=names.suggest(wish.offering, digest[:6]))


def earlier(user: User, wish: AllocationRequest, key: str) -> Allocation | None:
    """The allocation that this form made before."""
    since = made_at(key)
    if since is None:
        return None
    return (
        selectors.visible(user)
        .filter(
            project__slug=wish.project,
            name=wish.name,
            offering__key=wish.offering,
            count=wish.count,
            requested_by=user,
            created_at__gte=since,
        )
        .first()
    )
