"""Request and answer of the release of several allocations."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

from rest_framework import serializers

from allocations.domain.documents import FieldInfo
from allocations.requests.bulk_actions import MAX_AT_ONCE
from portal.api.http.strict import Body, Boolean, Choice, List, Text
from portal.api.schemas.allocation_output import OF_PHASES, OUTCOMES, PHASES
from portal.core.errors import Forbidden, NotVisible

PROBLEM_REASONS = [NotVisible.reason, Forbidden.reason]
FILTERS = ("project", "team", "phase", "offering", "name")


class BulkRelease(Body):
    """Which allocations to release: those named by `ids`, or those that match every filter that is given."""

    exclusive = tuple(("ids", name) for name in FILTERS)
    ids = List(child=Text(max_length=36), required=False, allow_empty=False, max_length=MAX_AT_ONCE)
    project = List(child=Text(), required=False, allow_empty=False, max_length=MAX_AT_ONCE, help_text="Slugs.")
    team = List(child=Text(), required=False, allow_empty=False, max_length=MAX_AT_ONCE, help_text="Slugs.")
    phase = List(child=Choice(PHASES), required=False, allow_empty=False, max_length=MAX_AT_ONCE)
    offering = List(child=Text(), required=False, allow_empty=False, max_length=MAX_AT_ONCE)
    name = List(child=Text(), required=False, allow_empty=False, max_length=MAX_AT_ONCE)
    mine = Boolean(default=False, help_text="Only what the caller requested.")
    reason = Text(required=False, default="", allow_blank=True, max_length=500)
    dry_run = Boolean(default=False, help_text="true: only say what would be released.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        filters = [name for name in FILTERS if name in attrs] + ["mine"] * attrs["mine"]
        if ("ids" in attrs) == bool(filters):
            words = f"Give ids, or at least one of {', '.join((*FILTERS, 'mine'))}; not both."
            raise serializers.ValidationError({"ids": [words]})
        return attrs


@dataclass(frozen=True)
class ReleaseProblemOut:
    reason: Annotated[str, FieldInfo(choices=tuple(PROBLEM_REASONS))]
    detail: str
    hint: str


@dataclass(frozen=True)
class ReleasedOut:
    """What is read from a ``Release``."""

    id: str
    name: Annotated[
        str | None,
        "Null, like what follows, where there is none to be seen.",
        lambda found: found.row and found.row.name,
    ]
    project: Annotated[str | None, lambda found: found.row and found.row.project.slug]
    phase: Annotated[str | None, OF_PHASES, lambda found: found.row and found.row.phase]
    outcome: Annotated[
        str | None, FieldInfo(choices=tuple(OUTCOMES)), lambda found: (found.row and found.row.outcome) or None
    ]
    released: Annotated[
        bool, "By this call; of a dry run, whether a call would. Else see problem.", attrgetter("is_new")
    ]
    problem: ReleaseProblemOut | None


@dataclass(frozen=True)
class BulkReleaseOut:
    dry_run: bool
    more: Annotated[bool, f"More than {MAX_AT_ONCE} match: send the same again."]
    results: Sequence[ReleasedOut]
