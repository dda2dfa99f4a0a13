"""Announcements: what operators tell everybody, and who sees which."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, NotVisible
from portal.core.locks import RowLock, unlocked
from portal.core.models import Announcement
from portal.core.reading import Columns
from portal.tenants import access
from portal.tenants.access import Person
from portal.tenants.actors import Actor

ACTION = "announcement.manage"
MAX_TEXT = 300
FIELDS = ("text", "severity", "starts_at", "ends_at")


def shown() -> QuerySet[Announcement]:
    """Return the announcements that everybody sees now."""
    now = clock.now()
    started, not_ended = Q(starts_at=None) | Q(starts_at__lte=now), Q(ends_at=None) | Q(ends_at__gt=now)
    return Announcement.objects.filter(started, not_ended)


def shown_part() -> Columns:
    """Return what to read of those that everybody sees now, warnings first: severity and text."""
    return Columns(shown().order_by("-severity", "pk"), ("severity", "text"))


def all_of(user: Person) -> QuerySet[Announcement]:
    """Return all announcements, for operators and auditors. Raises Forbidden."""
    return access.for_platform(user, Announcement.objects.all())


def get(user: Person, id_: int) -> Announcement:
    """Return an announcement that the person sees. Raises NotVisible."""
    rows = Announcement.objects.all() if access.sees_all(user) else shown()
    row = rows.filter(pk=id_).first()
    if row is None:
        raise NotVisible(f"The announcement {id_}")
    return row


def managed(user: Person, id_: int | None = None) -> Announcement:
    """Return an announcement to change, or a new one. Raises Forbidden, NotVisible."""
    access.require(user, ACTION, None)
    return get(user, id_) if id_ else Announcement()


def save(
    actor: Actor, row: Announcement, changes: Mapping[str, Any], lock: RowLock[Announcement] = unlocked
) -> Announcement:
    """Create the announcement, or change these of its `FIELDS`, and return it; without changes nothing is written.

    Raises Forbidden, Invalid.
    """
    access.require(actor, ACTION, None)
    with transaction.atomic():
        row = lock(row) if row.pk else row
        if not changes:
            return row
        before = _values(row) if row.pk else None
        for name, value in changes.items():
            setattr(row, name, value)
        _check(row.text, row.severity, row.starts_at, row.ends_at)
        if row.pk is None:
            row.created_by, row.created_at = actor.username, clock.now()
        row.save()
        audit(actor.username, "announcement.set", str(row.pk), before=before, after=_values(row))
    return row


def delete(actor: Actor, row: Announcement) -> None:
    access.require(actor, ACTION, None)
    with transaction.atomic():
        audit(actor.username, "announcement.delete", str(row.pk), before=_values(row))
        row.delete()


def _check(text: str, severity: str, starts_at: datetime | None, ends_at: datetime | None) -> None:
    if not 0 < len(text) <= MAX_TEXT or text.isspace() or not text.isprintable():
        raise Invalid({"text": [f"Give one line of 1 to {MAX_TEXT} printable characters."]})
    if severity not in Announcement.Severity:
        raise Invalid({"severity": [f"Use one of {', '.join(Announcement.Severity)}."]})
    if starts_at and ends_at and ends_at <= starts_at:
        raise Invalid({"ends_at": ["It must be after the start."]}, reason="time_invalid")


def _values(row: Announcement) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FIELDS}
