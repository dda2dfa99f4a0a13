"""Reads the audit log: permission, search and export."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from portal.audit import heads as audit_heads
from portal.audit.entries import audit
from portal.audit.heads import Head
from portal.core.errors import Forbidden
from portal.core.models import AuditEntry
from portal.tenants import access
from portal.tenants.models import Membership, User

BATCH = 1000
NAMED = ("actor", "target", "team", "project")
WORDS_IN = ("actor", "action", "target", "before_text", "after_text")


@dataclass(frozen=True)
class Search:
    """Search criteria: any of the values of each field; `since` <= at < `until`; `q` anywhere, also in before and
    after. An action matches by its whole name or its first word: `limit` finds `limit.set`.
    """

    actor: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    q: str = ""

    def criteria(self) -> dict[str, object]:
        """Return the criteria that are not empty."""
        return {name: value for name, value in vars(self).items() if value}


def visible(user: User) -> QuerySet[AuditEntry]:
    """Return the entries that `user` may read: all for operators and auditors, those of their teams for leads. Raises
    Forbidden for everybody else.
    """
    teams = teams_of(user)
    if teams is None:
        return AuditEntry.objects.all()
    if not teams:
        raise Forbidden("lead", hint="The audit log is for leads, of their team, and for operators and auditors.")
    return AuditEntry.objects.filter(team__in=teams)


def teams_of(user: User) -> list[str] | None:
    """Return the slugs of the teams of which `user` may read the entries; None if of all and of the platform."""
    if access.can(user, "audit.view", None):
        return None
    roles = access.PERMISSIONS["audit.view"]
    return list(Membership.objects.filter(user=user, role__in=roles).values_list("team__slug", flat=True))


def heads(user: User, since: date | None) -> Iterator[Head]:
    """Yield the chain's heads (`portal.audit.heads.heads`), for operators and auditors. Raises Forbidden."""
    access.require(user, "platform.view", None)
    return audit_heads.heads(since)


def matching(user: User, search: Search) -> QuerySet[AuditEntry]:
    """Return the entries that match and that `user` may read, with their positions in the chain. Raises Forbidden."""
    rows = visible(user).select_related("seal")
    for name in NAMED:
        if values := getattr(search, name):
            rows = rows.filter(**{f"{name}__in": values})
    if search.action:
        starts = (Q(action__startswith=f"{action}.") for action in search.action)
        rows = rows.filter(Q(*starts, action__in=search.action, _connector=Q.OR))
    if search.since:
        rows = rows.filter(at__gte=search.since)
    if search.until:
        rows = rows.filter(at__lt=search.until)
    if search.q:
        rows = rows.annotate(before_text=Cast("before", TextField()), after_text=Cast("after", TextField()))
        rows = rows.filter(Q(*((f"{name}__icontains", search.q) for name in WORDS_IN), _connector=Q.OR))
    return rows


def export(user: User, search: Search) -> Iterator[AuditEntry]:
    """Yield all entries that match, newest first, in batches of constant memory. The export is itself an entry of the
    log. Raises Forbidden at once, not when the first entry is read.
    """
    rows = matching(user, search).order_by("-pk")
    first = list(rows[:BATCH])
    audit(user.username, "audit.export", "audit", after=search.criteria())
    return _batches(rows, first)


def nothing(user: User) -> Iterator[AuditEntry]:
    """Yield no entry, and write none, for whom `export` is allowed. Raises Forbidden at once."""
    visible(user)
    return iter(())


def _batches(rows: QuerySet[AuditEntry], batch: list[AuditEntry]) -> Iterator[AuditEntry]:
    while batch:
        yield from batch
        batch = list(rows.filter(pk__lt=batch[-1].pk)[:BATCH])
