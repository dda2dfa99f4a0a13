"""Audit entries of what people do to allocations. What the cluster does is in their timelines."""

from collections.abc import Mapping
from typing import Any

from allocations.lifecycle.spec_of_row import COLUMNS
from allocations.models import Allocation
from portal.audit.entries import audit, entry
from portal.core.models import AuditEntry

REQUEST_COLUMNS = tuple(name for name in COLUMNS if name != "name")
"""Columns of the request; the name is left out, since it is in the entry's target."""

TOLD_BY_TRANSITIONS = ("request", "release", "extend", "retry")
"""What has an entry in the allocation's timeline too, and its event from there."""


def record_action(
    actor: str,
    verb: str,
    row: Allocation,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write an audit entry: `actor` did `verb` to `row`. Needs the row's project and team."""
    audit(
        actor,
        f"allocation.{verb}",
        _target(row),
        team=row.project.team.slug,
        project=row.project.slug,
        before=before,
        after=after,
        has_event=verb not in TOLD_BY_TRANSITIONS,
    )


def request_entry(actor: str, row: Allocation) -> AuditEntry:
    """Return the audit entry of a request, not saved. Needs the row's project, team and offering."""
    project, values = row.project, request_values(row)
    return entry(actor, "allocation.request", _target(row), team=project.team.slug, project=project.slug, after=values)


def _target(row: Allocation) -> str:
    return f"{row.project.slug}/{row.name}"


def request_values(row: Allocation) -> dict[str, Any]:
    """Return the values of the request that are not empty, by column."""
    values = {"id": row.pk, "offering": row.offering.key, **{name: getattr(row, name) for name in REQUEST_COLUMNS}}
    return {name: value for name, value in values.items() if value not in (None, "", {})}
