"""Bearer tokens: `gpup_<prefix>_<secret>`. The prefix finds the row; only the digest of the whole is stored."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.tenants.models import ApiToken

FORM = re.compile(r"gpup_(?P<prefix>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
MAX_TTL = timedelta(days=365)
DEFAULT_TTL = timedelta(days=90)
USE_NOTED_EVERY = timedelta(minutes=1)  # one write a minute and token, not one per request


class State(StrEnum):
    """Whether a token is accepted."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Expired(Exception):
    """A token that is known, and has expired."""

    def __init__(self, at: datetime) -> None:
        super().__init__(at)
        self.at = at


def generate() -> tuple[str, str]:
    """Return a new `(prefix, whole token)`, with 256 random bits."""
    prefix = secrets.token_hex(6)
    return prefix, f"gpup_{prefix}_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """Return the SHA-256 in hex. A plain digest suffices: unlike a password, the secret cannot be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


def end(now: datetime, requested: datetime | None, parent: ApiToken | None) -> datetime:
    """Return when a new token ends: as requested, else `DEFAULT_TTL` from now or with the token that creates it
    (`parent`).

    Raises Invalid for a time that has passed, is more than `MAX_TTL` ahead, or is after the end of `parent`.
    """
    latest = now + MAX_TTL
    if parent is not None and parent.expires_at < latest:
        latest = parent.expires_at
        if requested is not None and requested > latest:
            limit = f"The token of this request ends at {latest.isoformat()}, and what it creates ends no later."
            raise Invalid(
                {"expires_at": [limit]},
                reason="outlives_token",
                hint="Give a time up to then, leave expires_at out, or sign in by browser for a longer one.",
            )
    if requested is not None and not now < requested <= latest:
        raise Invalid({"expires_at": [f"A token lives at most {MAX_TTL.days} days, and ends in the future."]})
    return requested or min(now + DEFAULT_TTL, latest)


def check_scopes(scopes: Sequence[str], parent: ApiToken | None) -> None:
    """Raise Forbidden naming a scope that the creating token lacks itself."""
    for scope in scopes:
        if parent is not None and scope not in parent.scopes:
            raise Forbidden(
                scope,
                detail=f"This token lacks the scope {scope}, so it cannot hand it on.",
                hint=f"Give scopes of {', '.join(parent.scopes)}, or sign in by browser.",
            )


def state(row: ApiToken, now: datetime) -> State:
    """Return whether the token is accepted, and if not, why."""
    if row.revoked_at is not None:
        return State.REVOKED
    return State.EXPIRED if row.expires_at <= now else State.VALID


def find(token: str) -> ApiToken | None:
    """Return the valid token of an active person, with that person, or None; record its use.

    Raises Expired for one that is known and has expired.
    """
    match = FORM.fullmatch(token)
    if match is None:
        return None
    now = clock.now()
    accepted = ApiToken.objects.filter(revoked_at=None, user__is_active=True).select_related("user")
    row = accepted.filter(prefix=match["prefix"]).first()
    if row is None or not hmac.compare_digest(row.digest, digest(token)):
        return None
    if state(row, now) is State.EXPIRED:
        raise Expired(row.expires_at)
    if row.last_used_at is None or row.last_used_at <= now - USE_NOTED_EVERY:
        not_noted = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
        ApiToken.objects.filter(not_noted, pk=row.pk).update(last_used_at=now)
    return row
