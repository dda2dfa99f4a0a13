"""Audit entries of what people do to allocations; what the cluster does is in their timeline."""

from collections.abc import Mapping
from typing import Any

from allocations.lifecycle.spec_of_row import COLUMNS
from allocations.models import Allocation
from portal.audit.entries import audit

ASKED = tuple(name for name in COLUMNS if name != "name")
"""Columns that say what was asked for; the name is in the entry's target."""


def note(
    actor: str,
    verb: str,
    row: Allocation,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """`actor` did `verb` to `row`, which needs its project with the team loaded."""
    project = row.project
    target = f"{project.slug}/{row.name}"
    audit(actor, f"allocation.{verb}", target, team=project.team.slug, project=project.slug, before=before, after=after)


def asked(row: Allocation) -> dict[str, Any]:
    """What was asked for: values that are not empty."""
    values = {"id": row.pk, "offering": row.offering.key, **{name: getattr(row, name) for name in ASKED}}
    return {name: value for name, value in values.items() if value not in (None, "", {})}
