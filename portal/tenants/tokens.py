"""Bearer tokens: `gpup_<prefix>_<secret>`. The prefix finds the row; only the digest of the whole is kept."""

import hashlib
import hmac
import re
import secrets
from datetime import timedelta

from django.db.models import Q

from portal.core import clock
from portal.tenants.models import ApiToken

FORM = re.compile(r"gpup_(?P<prefix>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
MAX_TTL = timedelta(days=365)
USE_NOTED_EVERY = timedelta(minutes=1)  # one write a minute and token, not one per request


def generate() -> tuple[str, str]:
    """A new `(prefix, whole token)`, with 256 random bits."""
    prefix = secrets.token_hex(6)
    return prefix, f"gpup_{prefix}_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """SHA-256 in hex. A plain digest suffices: unlike a password, the secret cannot be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


def find(token: str) -> ApiToken | None:
    """The live token row of an active person, with that person, or None; notes its use."""
    match = FORM.fullmatch(token)
    if match is None:
        return None
    now = clock.now()
    row = (
        ApiToken.objects.select_related("user")
        .filter(prefix=match["prefix"], revoked_at=None, expires_at__gt=now, user__is_active=True)
        .first()
    )
    if row is None or not hmac.compare_digest(row.digest, digest(token)):
        return None
    if row.last_used_at is None or row.last_used_at <= now - USE_NOTED_EVERY:
        not_noted = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
        ApiToken.objects.filter(not_noted, pk=row.pk).update(last_used_at=now)
    return row
