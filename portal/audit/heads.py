"""Daily heads of the audit chain, to be stored where nobody can write who may write to the database.

A head has the number of entries sealed by the end of a UTC day, and the digest of the last one. Whoever rewrites the
whole chain cannot rewrite exported heads.
"""

import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated

import structlog
from django.db.models import Max
from django.db.models.functions import TruncDate

from portal.core import clock
from portal.core.models import AuditSeal

log = structlog.get_logger("audit")
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Head:
    """The chain at the end of a day (UTC), with the digest of its last entry."""

    day: date
    count: Annotated[int, "Entries in the chain at the end of the day."]
    digest: str

    def line(self) -> str:
        return json.dumps({**asdict(self), "day": self.day.isoformat()})


def head_of(day: date) -> Head | None:
    """Return the head of a past day; None if nothing was sealed by then."""
    last = AuditSeal.objects.filter(sealed_at__lt=_midnight(day + DAY)).order_by("position").last()
    return Head(day, last.position, last.digest) if last else None


def heads(since: date | None = None) -> Iterator[Head]:
    """Yield the head of each past day, oldest first, from `since` or the first on, in a fixed number of queries."""
    sealed = AuditSeal.objects.filter(sealed_at__lt=_midnight(today()))
    if since is not None:
        sealed = sealed.filter(sealed_at__gte=_midnight(since))
    last_of = dict(
        sealed.annotate(day=TruncDate("sealed_at", tzinfo=UTC)).values_list("day").annotate(last=Max("position"))
    )
    digests = dict(AuditSeal.objects.filter(pk__in=last_of.values()).values_list("pk", "digest"))
    head = head_of(since - DAY) if since is not None and since > date.min else None
    day = since if head is not None else min(last_of, default=today())
    while day is not None and day < today():
        if day in last_of:
            head = Head(day, last_of[day], digests[last_of[day]])
        if head is not None:
            yield replace(head, day=day)
        day += DAY


def read(file: Path) -> list[Head]:
    """Return the heads exported to `file`, none if it does not exist. Raises ValueError naming an invalid line."""
    if not file.exists():
        return []
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            values = json.loads(line)
            found.append(Head(date.fromisoformat(values["day"]), int(values["count"]), str(values["digest"])))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file}, line {number}, is not a head: {error}") from error
    return found


def export(file: Path | None) -> list[Head]:
    """Append the heads that `file` lacks, a JSON line each, and log them; without a file log only yesterday's."""
    if file is None:
        new = list(heads(today() - DAY))
    else:
        with file.open("a", encoding="utf-8") as out:
            fcntl.flock(out, fcntl.LOCK_EX)  # two at once would both find a day missing
            exported = read(file)
            new = list(heads(exported[-1].day + DAY if exported else None))
            out.writelines(f"{head.line()}\n" for head in new)
    for head in new:
        log.info("audit.head", day=head.day.isoformat(), count=head.count, digest=head.digest)
    return new


def today() -> date:
    return clock.now().astimezone(UTC).date()


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
