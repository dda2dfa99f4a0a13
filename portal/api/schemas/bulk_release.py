"""Request and answer of the release of several allocations."""

from typing import Any

from rest_framework import serializers

from allocations.requests.bulk_release import MAX_AT_ONCE, Release
from portal.api.http.strict import Body, Boolean, Choice, List, Text
from portal.api.schemas.allocation_output import OUTCOMES, PHASES
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


class ReleaseProblemOut(serializers.Serializer):
    reason = serializers.ChoiceField(PROBLEM_REASONS)
    detail = serializers.CharField()
    hint = serializers.CharField()


class ReleasedOut(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField(allow_null=True, help_text="Null, like what follows, where there is none to be seen.")
    project = serializers.CharField(allow_null=True)
    phase = serializers.ChoiceField(PHASES, allow_null=True)
    outcome = serializers.ChoiceField(OUTCOMES, allow_null=True)
    released = serializers.BooleanField(help_text="By this call; of a dry run, whether a call would. Else see problem.")
    problem = ReleaseProblemOut(allow_null=True)


class BulkReleaseOut(serializers.Serializer):
    dry_run = serializers.BooleanField()
    more = serializers.BooleanField(help_text=f"More than {MAX_AT_ONCE} match: send the same again.")
    results = ReleasedOut(many=True)


def released(found: Release) -> dict[str, Any]:
    row, problem = found.row, found.problem
    return {
        "id": found.id,
        "name": row.name if row else None,
        "project": row.project.slug if row else None,
        "phase": row.phase if row else None,
        "outcome": (row.outcome or None) if row else None,
        "released": found.is_new,
        "problem": {name: getattr(problem, name) for name in ("reason", "detail", "hint")} if problem else None,
    }
