"""The durable list of what has to be looked at, and when.

`portal.workqueue.targets` has the targets. The row is the truth: it is
written in the transaction of the change that makes a look necessary, and stays until a worker has looked. The
Celery message is a hint that the row is there; without any, `sweep` finds the row within `SWEEP_S`.

A worker's way through a target:
1. `take` leases it for `LEASE_S`, so that the same hint twice, or two workers, give one look;
2. it looks, and acts;
3. `finish` removes the row or sets the next look; `fail` sets a later one, with exponential back-off.
A mark made between 1 and 3 raises `marks` and sends no hint; step 3 sees that and leaves the target due at once, so the
same worker looks again: what follows upon its own acts is mostly seen before it is done. A worker that dies leaves the
lease, which runs out.

Times are the database's, so a machine with a wrong clock neither delays nor repeats a look: they are written and
compared by PostgreSQL, and within a look `clock.now()` is corrected by it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import (
    Case,
    DateTimeField,
    DurationField,
    Expression,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now

from portal.core import clock
from portal.core.errors import Permanent, Retryable
from portal.core.models import Due
from portal.workqueue import wakeups
from portal.workqueue.targets import Target

log = structlog.get_logger(__name__)

SWEEP_LIMIT = 500
MANY = 10
"""Targets marked at once, from which on they are not what one person waits for: a new flavor concerns every project."""
LOOKS_IN_A_ROW = 5
"""After these a hint is sent instead: nobody has a worker for himself."""
CLOCK_TOLERANCE = timedelta(seconds=1)
"""A machine that is ahead of the database by less is not corrected: the answer may have been that long on its way."""
# The statement's time: now() stands still in a transaction, and for clock_timestamp() no index is used.
MARK = """
    INSERT INTO core_due AS due (target, due_at, marks, attempts, error, updated_at)
    SELECT target, coalesce(%(at)s::timestamptz, clock.now), 1, 0, '', clock.now
    FROM unnest(%(targets)s::text[]) AS target,
        (SELECT coalesce(%(held)s::timestamptz, statement_timestamp()) AS now) AS clock
    ON CONFLICT (target) DO UPDATE
    SET due_at = least(due.due_at, excluded.due_at), marks = due.marks + 1, updated_at = excluded.updated_at
    RETURNING target, leased_until, updated_at
"""
TAKE = """
    UPDATE core_due SET leased_until = clock.now + make_interval(secs => %(lease_s)s), updated_at = clock.now
    FROM (SELECT coalesce(%(held)s::timestamptz, statement_timestamp()) AS now) AS clock
    WHERE target = %(target)s AND due_at <= clock.now AND (leased_until IS NULL OR leased_until <= clock.now)
    RETURNING marks, attempts, leased_until, coalesce(%(held)s::timestamptz, clock_timestamp())
"""


@dataclass(frozen=True)
class Taken:
    """A target that this worker alone looks at until its lease runs out."""

    target: str
    marks: int
    attempts: int
    until: datetime
    correction: timedelta
    """What this machine's clock lacks to the database's."""


def mark(*targets: Target, at: datetime | None = None) -> None:
    """Have each target looked at from `at` on (default: now), or earlier if it is due earlier already.

    Part of the caller's transaction; hints for what is due now are sent after its commit. Those for `MANY` targets wait
    behind all others.
    """
    if not targets:
        return
    # Sorted, so that two transactions that mark the same targets take the row locks in one order.
    ordered = sorted(set(targets))
    with connection.cursor() as cursor:
        cursor.execute(MARK, {"at": at, "held": clock.held(), "targets": ordered})
        rows = cursor.fetchall()
    idle = sorted(
        target for target, until, now in rows if (at is None or at <= now) and (until is None or until <= now)
    )
    if idle:
        priority = wakeups.LAST if len(targets) >= MANY else wakeups.FIRST
        transaction.on_commit(lambda: wakeups.send(idle, priority), robust=True)


def take(target: str) -> Taken | None:
    """Lease the target if it is due, else None: then someone else has it, or there is nothing to do."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"target": target, "held": clock.held(), "lease_s": settings.LEASE_S})
        row = cursor.fetchone()
    if row is None:
        return None
    marks, attempts, until, now = row
    return Taken(target, marks, attempts, until, correction=_correction(now - clock.now()))


def _correction(difference: timedelta) -> timedelta:
    """The difference of the clocks, or none where the way of the answer may be all of it.

    A machine that is behind is always put right: its look would come before the time it is for, and be repeated.
    """
    return timedelta(0) if -CLOCK_TOLERANCE < difference <= timedelta(0) else difference


def finish(taken: Taken, next_at: datetime | None = None) -> bool:
    """The look is done: look again at `next_at`, or not until the next mark. False if it was marked meanwhile."""
    unmarked = _ours(taken).filter(marks=taken.marks)
    done = unmarked.delete()[0] if next_at is None else unmarked.update(due_at=next_at, **_fresh())
    return bool(done) or not _ours(taken).update(due_at=now(), **_fresh())


def _ours(taken: Taken) -> QuerySet[Due]:
    """The row, unless the lease ran out and someone else took it: then it is theirs to finish, with its new marks."""
    return Due.objects.filter(target=taken.target, leased_until=taken.until)


def _fresh() -> dict[str, Any]:
    return {"leased_until": None, "attempts": 0, "error": "", "updated_at": now()}


def fail(taken: Taken, error: Exception) -> float:
    """The look failed: look again with exponential back-off and jitter, or as the error asks.

    Returns in how many seconds. A mark made meanwhile may have mended it, so then the first step of the back-off is
    waited, not a long one.
    """
    asked = error.after_s if isinstance(error, Retryable) else None
    wait_s = asked if asked is not None else backoff(taken.attempts)
    soon_s = min(wait_s, settings.RETRY_FIRST_S)
    again = Case(When(marks=taken.marks, then=_in(wait_s)), default=_in(soon_s), output_field=DateTimeField())
    _ours(taken).update(
        due_at=again, leased_until=None, attempts=taken.attempts + 1, error=str(error)[:2000], updated_at=now()
    )
    return wait_s


def now() -> Expression:
    """The database's time, to write and compare due times with in a query."""
    held = clock.held()
    return Now() if held is None else Value(held, output_field=DateTimeField())


def _in(seconds: float) -> ExpressionWrapper:
    return ExpressionWrapper(now() + timedelta(seconds=seconds), output_field=DateTimeField())


def backoff(attempts: int) -> float:
    """Seconds to wait after this many failures: doubling from `RETRY_FIRST_S` up to `RETRY_MAX_S`."""
    full = min(settings.RETRY_FIRST_S * 2.0 ** min(attempts, 30), float(settings.RETRY_MAX_S))
    return full * random.uniform(0.75, 1.0)  # noqa: S311 (spreads retries, guards nothing)


def work(target: str, look: Callable[[str], datetime | None]) -> bool:
    """Take the target and call `look(target)`, which returns when to look again; False if it was not ours.

    An exception is recorded on the row and ends here: the row, not the message, brings the retry.
    """
    taken = take(target)
    if taken is None:
        return False
    with structlog.contextvars.bound_contextvars(target=target):
        for _ in range(LOOKS_IN_A_ROW - 1):
            if _look(taken, look):
                return True
            if (again := take(target)) is None:
                return True
            taken = again
        if not _look(taken, look):
            wakeups.send([target])
    return True


def _look(taken: Taken, look: Callable[[str], datetime | None]) -> bool:
    """Look once; False if the target is due again at once."""
    try:
        with clock.corrected(taken.correction):
            next_at = look(taken.target)
    except Retryable as error:
        log.warning("due.retry", error=str(error), again_s=round(fail(taken, error), 3))
    except Permanent as error:
        log.warning("due.refused", error=str(error), again_s=round(fail(taken, error), 3))
    except Exception as error:
        log.exception("due.failed", again_s=round(fail(taken, error), 3))
    else:
        return finish(taken, next_at)
    return True


def sweep() -> int:
    """Send a hint for what is due, longest due first, behind those of what people do now; returns how many."""
    targets = list(waiting().order_by("due_at").values_list("target", flat=True)[:SWEEP_LIMIT])
    wakeups.send(targets, wakeups.LAST)
    return len(targets)


def waiting() -> QuerySet[Due]:
    """What is due, and nobody looks at."""
    return Due.objects.filter(Q(leased_until=None) | Q(leased_until__lte=now()), due_at__lte=now())


def lag_s() -> float:
    """For how many seconds the longest due target has been waiting; 0 if none is."""
    lag = ExpressionWrapper(now() - F("due_at"), output_field=DurationField())
    longest = waiting().order_by("due_at").values_list(lag, flat=True).first()
    return longest.total_seconds() if longest else 0.0
