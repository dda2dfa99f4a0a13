"""The problem types of the REST API, as OpenAPI schemas: each refusal by its ``type``, with status and members."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, get_args

from rest_framework.serializers import Serializer

from allocations.cluster.errors import ClusterStoreFull
from allocations.requests.alternatives import Alternative
from portal.api.http import problems
from portal.api.http.etag import PreconditionFailed, PreconditionRequired
from portal.api.schemas.outputs import output_of
from portal.core import errors
from portal.core.errors import Problem, Violation
from portal.http.idempotency import KeyReused

Schema = dict[str, Any]
Reference = Callable[[type[Serializer]], Schema]
"""Returns the reference to the component of a serializer."""

KINDS: tuple[type[Problem], ...] = (
    errors.NotVisible,
    errors.Forbidden,
    errors.Malformed,
    errors.LengthRequired,
    errors.TooLarge,
    errors.UnsupportedMediaType,
    errors.TooManyRequests,
    errors.Busy,
    KeyReused,
    PreconditionFailed,
    PreconditionRequired,
)
"""Problems that have one reason."""
VIOLATIONS: tuple[str, ...] = get_args(errors.ViolationReason)
TEXT: Schema = {"type": "string"}


class ProblemType(NamedTuple):
    """A problem type: its machine reason, its status, its title, and the class that decides on its members."""

    reason: str
    status: int
    title: str
    kind: type[Problem] = Problem

    @property
    def uri(self) -> str:
        return errors.type_uri(self.reason)

    @property
    def component(self) -> str:
        """The name of its schema."""
        is_ambiguous = sum(reason == self.reason for reason, _ in TYPES) > 1
        return f"{self.reason.title().replace('_', '')}{self.status if is_ambiguous else ''}Problem"

    def schema(self, reference: Reference) -> Schema:
        """Return the schema of the body."""
        members: Schema = {
            "type": {"type": "string", "const": self.uri},
            "title": TEXT,
            "status": {"type": "integer", "const": self.status},
            "detail": {**TEXT, "description": "What happened, for people."},
            "reason": {"type": "string", "const": self.reason},
            "hint": {**TEXT, "description": "What to do about it; may be empty."},
        }
        if self.kind is errors.Invalid:
            sentences = {"type": "array", "items": TEXT}
            members["errors"] = {
                "type": "object",
                "additionalProperties": sentences,
                "description": "Sentences by field.",
            }
        if self.kind is errors.Refused:
            members["dimensions"] = {
                "type": "array",
                "items": reference(output_of(Violation)),
                "description": "All limits that the request exceeds.",
            }
            members["alternatives"] = {
                "type": "array",
                "items": reference(output_of(Alternative)),
                "description": "Requests that would be accepted.",
            }
        required = list(members)
        if self.kind is errors.Refused and self.reason in VIOLATIONS:
            members |= {"dimension": {**TEXT, "description": "Of the first limit exceeded, as the amounts."}}
            members |= {name: {"type": "integer"} for name in ("limit", "used", "requested")}
        return {"type": "object", "description": self.title, "properties": members, "required": required}


def _types() -> Iterator[ProblemType]:
    for reason in get_args(errors.InvalidReason):
        yield ProblemType(reason, errors.Invalid.status, errors.Invalid.title, errors.Invalid)
    for reason in (*VIOLATIONS, *get_args(errors.ConflictReason)):
        yield ProblemType(reason, errors.Refused.status, errors.Refused.title, errors.Refused)
    for kind in KINDS:
        yield ProblemType(kind.reason, kind.status, kind.title)
    for library_error, reason, _ in problems.KNOWN:
        yield ProblemType(reason, library_error.status_code, problems.title_of(library_error))
    yield ProblemType(ClusterStoreFull.reason, errors.Busy.status, errors.Busy.title)
    yield ProblemType(problems.INTERNAL, 500, problems.INTERNAL_TITLE)


TYPES: dict[tuple[str, int], ProblemType] = {}
for _type in _types():
    TYPES.setdefault((_type.reason, _type.status), _type)


class Refusals(tuple[ProblemType, ...]):
    """Problem types that an operation may answer with one status."""


def refusals(*reasons: str) -> dict[int, Refusals]:
    """Return the problem types with these reasons, by status, for ``responses`` of ``extend_schema``."""
    return by_status(of_reasons(reasons))


def of_reasons(reasons: Iterable[str]) -> set[ProblemType]:
    """Return the problem types with these reasons. Raises KeyError for an unknown one."""
    reasons = set(reasons)
    if unknown := reasons - {reason for reason, _ in TYPES}:
        raise KeyError(f"There is no problem type {', '.join(sorted(unknown))}.")
    return {each for each in TYPES.values() if each.reason in reasons}


def by_status(found: Iterable[ProblemType]) -> dict[int, Refusals]:
    """Return the problem types by status, in order."""
    found = sorted(found, key=lambda each: (each.status, each.reason))
    return {
        status: Refusals(each for each in found if each.status == status)
        for status in sorted({each.status for each in found})
    }
