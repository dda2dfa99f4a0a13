"""One request of the hostile member, and the context from which requests are built. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Object = dict[str, Any]
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
SIGN_IN = "/login"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"


class Credentials(StrEnum):
    """Which credentials a request uses, and which server it is sent to."""

    KUBECONFIG = "kubeconfig"  # to the API server
    TOKEN = "token"  # to the portal, by REST
    SESSION = "session"  # to the portal's pages
    NONE = "none"  # to the portal, as nobody


@dataclass(frozen=True)
class Call:
    """A request. With ``must_fail`` it has to be refused in every state.

    ``{id}`` in the path of a call to the portal is the id of an allocation that an earlier call of the same kind
    created. A body that is not ``bytes`` is sent as JSON. The answer of a ``stream`` stays open, together with many
    others.
    """

    credentials: Credentials
    method: str
    path: str
    body: Object | bytes | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    must_fail: bool = False
    stream: bool = False

    def is_accepted(self, status: int) -> bool:
        """Return whether the status means success; the sign-in page answers 200 to wrong passwords."""
        return status == 302 if self.path == SIGN_IN else 200 <= status < 300

    def __str__(self) -> str:
        query = "?" + "&".join(f"{key}={value}" for key, value in self.query.items()) if self.query else ""
        return f"{self.method} {self.path}{query} {_brief(self.body)}".rstrip()


@dataclass(frozen=True)
class AttackContext:
    """What the member knows: own namespace, project, team and allocations, names of others, and a time tomorrow."""

    namespace: str
    project: str
    team: str
    allocations: tuple[str, ...]
    other_team: str
    others: tuple[str, ...]
    tomorrow: str


def _brief(body: object, max_length: int = 300) -> str:
    if body is None:
        return ""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    return text if len(text) <= max_length else f"{text[:max_length]}… ({len(text)} characters)"
