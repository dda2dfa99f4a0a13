"""The model of this app, defined in `portal.core.models`, since pages use it as well as REST."""

from portal.core.models import IdempotentReply

__all__ = ["IdempotentReply"]
