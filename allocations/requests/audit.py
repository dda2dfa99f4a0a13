"""Audit entries of what people do to allocations. What the cluster does is in their timelines."""

from collections.abc import Mapping
from typing import Any

from allocations.lifecycle.spec_of_row import COLUMNS
from allocations.models import Allocation
from portal.audit.entries import audit, entry
from portal.core.models import AuditEntry

REQUEST_COLUMNS = tuple(name for name in COLUMNS if name != "name")
"""Columns of the request; the name is left out, since it is in the entry's target."""


def record_action(
    actor: str,
    verb: str,
    row: Allocation,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write an audit entry: `actor` did `verb` to `row`. Needs the row's project and team."""
    audit(*_names(actor, verb, row), **_scope(row), before=before, after=after)


def request_entry(actor: str, row: Allocation) -> AuditEntry:
    """Return the audit entry of a request, not saved. Needs the row's project, team and offering."""
    return entry(*_names(actor, "request", row), **_scope(row), after=request_values(row))


def _names(actor: str, verb: str, row: Allocation) -> tuple[str, str, str]:
    return actor, f"allocation.{verb}", f"{row.project.slug}/{row.name}"


def _scope(row: Allocation) -> dict[str, str]:
    return {"team": row.project.team.slug, "project": row.project.slug}


def request_values(row: Allocation) -> dict[str, Any]:
    """Return the values of the request that are not empty, by column."""
    values = {"id": row.pk, "offering": row.offering.key, **{name: getattr(row, name) for name in REQUEST_COLUMNS}}
    return {name: value for name, value in values.items() if value not in (None, "", {})}
