"""An audit entry with its changes field by field."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from portal.core.models import AuditEntry, AuditSeal

NOTHING = "–"
SUMMARY_MAX = 120
WAYS = {"page": "page", "api": "REST", "admin": "platform admin", "command": "command line", "worker": "worker"}


@dataclass(frozen=True)
class FieldChange:
    """One field; `before` is empty if it was added, `after` if it was removed."""

    field: str
    before: str
    after: str


@dataclass(frozen=True)
class AuditLine:
    entry: AuditEntry
    changes: list[FieldChange]
    source: str
    position: int | None

    @property
    def summary(self) -> str:
        """Return the changes in one line, or what else there is to read."""
        return "; ".join(f"{one.field} {one.before} → {one.after}" for one in self.changes)[:SUMMARY_MAX] or "Details"


def lines(entries: Iterable[AuditEntry]) -> list[AuditLine]:
    """Return the entries as lines; each has its seal loaded."""
    return [
        AuditLine(
            entry, changes(entry.before, entry.after), source(entry.source), _position(getattr(entry, "seal", None))
        )
        for entry in entries
    ]


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[FieldChange]:
    """Return the fields that changed, by name."""
    was, is_ = before or {}, after or {}
    return [
        FieldChange(name, _shown(was, name), _shown(is_, name))
        for name in sorted({*was, *is_})
        if was.get(name) != is_.get(name)
    ]


def source(facts: Mapping[str, str]) -> str:
    """Return the source of an entry as text: `REST, token 1a2b3c, from 192.0.2.7`."""
    parts = [
        WAYS.get(facts.get("way", ""), ""),
        facts.get("command", "") or facts.get("task", ""),
        f"token {facts['token']}" if "token" in facts else "",
        f"from {facts['address']}" if "address" in facts else "",
    ]
    return ", ".join(filter(None, parts))


def _shown(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return ""
    value = values[name]
    if value is None or value == "":
        return NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _position(seal: AuditSeal | None) -> int | None:
    return seal.position if seal else None
