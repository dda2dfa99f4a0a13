"""Exceptions of two families.

`Problem`: a refused request of a person; every interface shows it (REST as problem+json, RFC 9457). `Retryable` and
`Permanent`: failed work against another system; the caller retries, or reports it and stops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

ViolationReason = Literal[
    "offering_hidden", "never_fits", "too_complex", "count_invalid", "quota_exceeded", "limit_exceeded"
]
"""Which kind of limit a request exceeds."""
ConflictReason = Literal[
    "already_member",
    "in_progress",
    "invitation_void",
    "last_lead",
    "last_operator",
    "name_taken",
    "preview_outdated",
    "too_many_invitations",
    "wrong_phase",
]
"""Why a request contradicts what is there now."""
InvalidReason = Literal["invalid", "count_invalid", "time_invalid", "outlives_token"]
"""Why values are not valid. Each reason is a problem type of the REST API, as those above are."""


@dataclass(frozen=True)
class Violation:
    """A limit that a request exceeds: its dimension, its amounts, and what would be accepted.

    `dimension` is `member|project|team|department:<pool>`, `budget:<id>`, `capacity:<offering>` or `node:<offering>`;
    amounts are integers in slices.
    """

    reason: ViolationReason
    dimension: str
    limit: int
    used: int
    requested: int
    detail: str
    hint: str


def type_uri(reason: str) -> str:
    """Return the URI of the problem type with this reason (RFC 9457 §3.1.1)."""
    return f"urn:gpu-portal:problem:{reason}"


class Problem(Exception):
    """A refusal with status, reason, sentence, and a hint what to do."""

    status = 400
    reason = "invalid"
    title = "The request cannot be done"

    def __init__(
        self,
        detail: str,
        *,
        reason: str | None = None,
        hint: str = "",
        errors: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason or self.reason
        self.hint = hint
        self.errors = {field: list(messages) for field, messages in (errors or {}).items()}

    def document(self) -> dict[str, Any]:
        """Return the body of the answer: the members of RFC 9457, and the portal's own."""
        return {
            "type": type_uri(self.reason),
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "reason": self.reason,
            "hint": self.hint,
            **({"errors": self.errors} if self.errors else {}),
        }


class Invalid(Problem):
    """400: fields that cannot be read or are out of range; `errors` says which and why."""

    title = "Some values are not valid"

    def __init__(
        self, errors: Mapping[str, Sequence[str]], *, reason: InvalidReason = "invalid", hint: str = ""
    ) -> None:
        detail = " ".join(f"{field}: {' '.join(messages)}" for field, messages in errors.items())
        super().__init__(detail, reason=reason, hint=hint, errors=errors)


class NotVisible(Problem):
    """404: it does not exist, or the person may not know that it does."""

    status = 404
    reason = "not_found"
    title = "Not found"

    def __init__(self, subject: str = "This", *, hint: str = "") -> None:
        super().__init__(f"{subject} does not exist, or you cannot see it.", hint=hint)


class Forbidden(Problem):
    """403: visible, but the role or the token's scope is missing."""

    status = 403
    reason = "role_missing"
    title = "Not allowed"

    def __init__(self, role_missing: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(
            detail or f"This needs the role {role_missing} in the team.",
            hint=hint or f"Ask a lead of the team for the role {role_missing}.",
        )


class Refused(Problem):
    """409: refused by quota, policy or phase. `violations` are all limits exceeded, in the order of the rules."""

    status = 409
    title = "Refused"

    def __init__(
        self,
        reason: ViolationReason | ConflictReason,
        detail: str,
        hint: str = "",
        *,
        violations: Sequence[Violation] = (),
        alternatives: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(detail, reason=reason, hint=hint)
        self.violations = tuple(violations)
        self.alternatives = tuple(alternatives)

    def document(self) -> dict[str, Any]:
        document = super().document()
        if self.violations:
            first = self.violations[0]
            document |= {name: getattr(first, name) for name in ("dimension", "limit", "used", "requested")}
        return {
            **document,
            "dimensions": [asdict(violation) for violation in self.violations],
            "alternatives": [dict(alternative) for alternative in self.alternatives],
        }


class Malformed(Problem):
    """400: the body cannot be parsed."""

    reason = "malformed"
    title = "The body cannot be read"


class LengthRequired(Problem):
    """411: the body has no declared length, and no end that can be detected."""

    status = 411
    reason = "length_required"
    title = "The body has no length"


class TooLarge(Problem):
    """413: the body is above the limit."""

    status = 413
    reason = "too_large"
    title = "The body is too large"


class UnsupportedMediaType(Problem):
    """415: the body is of a kind or in an encoding that is not read."""

    status = 415
    reason = "unsupported_media_type"
    title = "Unsupported media type"


class Busy(Problem):
    """503: a lock or slot is taken; the same request succeeds a little later."""

    status = 503
    reason = "busy"
    title = "Busy"
    retry_after_s = 1


class TooManyRequests(Busy):
    """429: the person exceeded a limit on requests, and may try again in `wait_s` seconds."""

    status = 429
    reason = "throttled"
    title = "Too many requests"

    def __init__(self, detail: str, wait_s: int) -> None:
        super().__init__(detail, hint=f"Try again in {wait_s} second{'' if wait_s == 1 else 's'}.")
        self.retry_after_s = wait_s


class Retryable(Exception):
    """Work that failed for now: the same attempt may succeed later, after `after_s` seconds if given.

    `reason`, `detail` and `hint` are shown to the person whose request it was; empty for what passes in a moment.
    """

    reason = "busy"
    detail = ""
    hint = ""

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Permanent(Exception):
    """Work that fails the same way each time until someone changes something."""
