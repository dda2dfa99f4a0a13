"""Verifies the audit log: walks the chain and names the first row that was changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from portal.audit.chain import BATCH, START, digest
from portal.audit.heads import Head
from portal.core.models import AuditEntry, AuditSeal

Link = tuple[AuditSeal, AuditEntry | None]


@dataclass(frozen=True)
class ChainCheck:
    """The first `count` entries are intact, and `digest` is the chain's after them. `broken` names the first row that
    is not; it is empty if all are.
    """

    count: int
    digest: str
    broken: str = ""


def verify(exported: Sequence[Head] = ()) -> ChainCheck:
    """Verify the whole chain, also against `exported` heads, in any order."""
    expected: dict[int, list[Head]] = {}
    for head in exported:
        expected.setdefault(head.count, []).append(head)
    count, last = 0, START
    trusted = ChainCheck(0, START)  # up to the last head that was exported and holds
    for (seal, entry), following in _with_next(_links()):
        if broken := _broken(count + 1, last, seal, entry, following):
            return ChainCheck(count, last, broken)
        count, last = seal.position, seal.digest
        heads = expected.pop(count, ())
        if other := next((head for head in heads if head.digest != last), None):
            where = f"position {trusted.count + 1} or later, up to {count}"
            return replace(trusted, broken=f"{where}: rewritten since the head of {other.day} was exported.")
        if heads:
            trusted = ChainCheck(count, last)
    if expected:
        head = expected[max(expected)][0]
        gone = f"position {count + 1}: missing, as all up to {head.count}, which the head of {head.day} counts."
        return ChainCheck(count, last, gone)
    return ChainCheck(count, last)


def _broken(position: int, before: str, seal: AuditSeal, entry: AuditEntry | None, following: Link | None) -> str:
    """Return what is wrong at `position`, in a sentence; empty if nothing is."""
    if seal.position != position:
        return f"position {position}: missing; the next is {seal.position}."
    if entry is None:
        return f"position {position}: entry {seal.entry_id} is missing."
    right = digest(before, position, seal.sealed_at, entry)
    if seal.digest == right:
        return ""
    words = f"position {position}: entry {entry.pk} ({entry.actor} {entry.action} {entry.target}, {entry.at:%F %T} UTC)"
    after, next_entry = following or (None, None)
    if after is not None and next_entry is not None:
        # The next seal was made over the digest that stood here then.
        then = digest(right, position + 1, after.sealed_at, next_entry)
        return f"{words} holds, but its seal was changed." if after.digest == then else f"{words} was changed."
    return f"{words} or its seal was changed."


def _links() -> Iterator[Link]:
    """Yield the seals by position, each with its entry if that exists."""
    position = 0
    while seals := list(AuditSeal.objects.filter(position__gt=position).order_by("position")[:BATCH]):
        entries = AuditEntry.objects.in_bulk([seal.entry_id for seal in seals])
        yield from ((seal, entries.get(seal.entry_id)) for seal in seals)
        position = seals[-1].position


def _with_next(links: Iterator[Link]) -> Iterator[tuple[Link, Link | None]]:
    current = next(links, None)
    while current is not None:
        following = next(links, None)
        yield current, following
        current = following
