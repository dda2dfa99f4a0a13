"""The work queue: one row for each target that a worker has to reconcile, and from when on.

`portal.workqueue.targets` names the targets. A row is written in the transaction of the change that makes the work
necessary, and stays until a worker has done it. A Celery message only wakes a worker up; if it is lost, `sweep` finds
the row within `SWEEP_S`, or as soon as a worker is connected to the broker again.

How a worker processes a target:
1. `lease` reserves it for `LEASE_S`, so that two workers, or the same message delivered twice, process it once. The
   same statement takes the advisory lock of its reconcile if it is free, and that of step 3 releases it.
2. The worker reconciles it.
3. `finish` removes the row or sets the next time; `fail` sets a later one, with exponential back-off.
If the target is enqueued between steps 1 and 3, `marks` is raised and no message is sent. Step 3 sees the higher number
and leases the target again, so the same worker processes it again and usually sees the effect of its own writes.
If a worker dies, its lease expires.

All times are PostgreSQL's, so a machine with a wrong clock does not delay or repeat work. While a target is processed,
`clock.now()` is corrected by the difference.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
from portal.core.locks import holding
from portal.core.models import WorkItem
from portal.core.writing import WriteStatement
from portal.workqueue import wakeups
from portal.workqueue.targets import Target

log = structlog.get_logger(__name__)

SWEEP_LIMIT = 500
MANY = 10
"""With this many targets at once nobody waits for one in particular: a new flavor concerns every project."""
MAX_CONSECUTIVE_RUNS = 5
"""After this many runs a message is sent instead, so that one target cannot occupy a worker."""
CLOCK_TOLERANCE = timedelta(seconds=1)
"""A clock ahead of the database by less than this is not corrected: the reply may have taken that long."""
# The statement's time: database_now() stands still in a transaction, and for clock_timestamp() no index is used.
ENQUEUE = """
    INSERT INTO core_due AS item (target, due_at, marks, attempts, error, request_id, updated_at)
    SELECT target, coalesce(clock.at, clock.now), 1, 0, '', %s, clock.now
    FROM unnest(%s::text[]) AS target,
        (SELECT %s::timestamptz AS at, coalesce(%s::timestamptz, statement_timestamp()) AS now) AS clock
    ON CONFLICT (target) DO UPDATE
    SET due_at = least(item.due_at, excluded.due_at), marks = item.marks + 1, updated_at = excluded.updated_at,
        request_id = coalesce(nullif(excluded.request_id, ''), item.request_id)
    RETURNING target, coalesce(%s::timestamptz <= updated_at, true)
        AND coalesce(leased_until <= updated_at, true) AS is_idle, request_id
"""
LEASE = """
    UPDATE core_due SET leased_until = clock.now + make_interval(secs => %(lease_s)s), updated_at = clock.now
    FROM (SELECT coalesce(%(held)s::timestamptz, statement_timestamp()) AS now) AS clock
    WHERE target = %(target)s AND due_at <= clock.now AND (leased_until IS NULL OR leased_until <= clock.now)
    RETURNING marks, attempts, leased_until, coalesce(%(held)s::timestamptz, clock_timestamp()),
        pg_try_advisory_lock(%(lock)s), request_id
"""
REMOVE = """
    DELETE FROM core_due WHERE target = %(target)s AND leased_until = %(until)s AND marks = %(marks)s
    RETURNING pg_advisory_unlock(%(lock)s)
"""
"""A statement of its own, since Django begins and commits a transaction around a DELETE."""
# The marks are compared in SET: if the target is enqueued while this waits for its row, they are compared again.
FINISH = """
    UPDATE core_due
    SET due_at = CASE WHEN marks = %(marks)s THEN coalesce(%(next_at)s::timestamptz, clock.now) ELSE clock.now END,
        leased_until = CASE WHEN marks <> %(marks)s THEN clock.now + make_interval(secs => %(lease_s)s) END,
        attempts = 0, error = '', updated_at = clock.now
    FROM (SELECT coalesce(%(held)s::timestamptz, statement_timestamp()) AS now) AS clock
    WHERE target = %(target)s AND leased_until = %(until)s
    RETURNING marks, leased_until, coalesce(%(held)s::timestamptz, clock_timestamp()),
        CASE WHEN leased_until IS NULL THEN pg_advisory_unlock(%(lock)s) END, request_id
"""


@dataclass(frozen=True)
class LeasedItem:
    """A target that only this worker processes, until its lease expires."""

    target: str
    marks: int
    attempts: int
    until: datetime
    correction: timedelta
    """What to add to this machine's clock to get the database's."""
    lock: int | None = None
    """The number of the advisory lock that the lease took; None if it asked for none, or if another session has it."""
    request_id: str = ""


def enqueue(*targets: Target, at: datetime | None = None) -> None:
    """Have a worker process each target from `at` on (default: now), or earlier if it is due earlier already.

    Part of the caller's transaction; wake-ups for what is due now are sent after its commit. Those for `MANY` targets
    wait behind all others.
    """
    if not targets:
        return
    statement = enqueue_statement(*targets, at=at)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        wake(cursor.fetchall())


def enqueue_statement(*targets: Target, at: datetime | None = None) -> WriteStatement:
    """Return the statement of `enqueue`, for callers that write other rows with it and give `wake` what it returns."""
    # Sorted, so that two transactions that enqueue the same targets take the row locks in one order.
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    parameters = [request_id, sorted(set(targets)), at, clock.frozen_at(), at]
    return WriteStatement(ENQUEUE, parameters, ("target", "is_idle", "request_id"))


def wake(enqueued: Sequence[Sequence[Any]]) -> None:
    """Send wake-ups after the commit for the targets that are due and that no worker has."""
    idle = sorted(target for target, is_idle, _ in enqueued if is_idle)
    if idle:
        priority = wakeups.LAST if len(enqueued) >= MANY else wakeups.FIRST
        transaction.on_commit(lambda: wakeups.send(idle, priority), robust=True)


def lease(target: str, lock: int | None = None) -> LeasedItem | None:
    """Lease the target if it is due, and take the advisory lock with this number if it is free; return None if the
    target is not due, or if another worker has it.
    """
    times = {"held": clock.frozen_at(), "lease_s": settings.LEASE_S}
    with connection.cursor() as cursor:
        cursor.execute(LEASE, {"target": target, "lock": lock, **times})
        row = cursor.fetchone()
    if row is None:
        return None
    marks, attempts, until, now, has_lock, request_id = row
    correction, held = _correction(now - clock.now()), lock if has_lock else None
    return LeasedItem(target, marks, attempts, until, correction, held, request_id)


def _correction(difference: timedelta) -> timedelta:
    """Return the difference of the clocks, or zero where the delay of the reply may explain it.

    A clock that is behind is always corrected: work would otherwise run before its time, and again at it.
    """
    return timedelta(0) if -CLOCK_TOLERANCE < difference <= timedelta(0) else difference


def finish(item: LeasedItem, next_at: datetime | None = None) -> bool:
    """Set the next time to `next_at`, or remove the row. Return False if the target was enqueued meanwhile."""
    return _finish(item, next_at, lease_s=None) is None


def _finish(item: LeasedItem, next_at: datetime | None, *, lease_s: int | None) -> LeasedItem | None:
    """Do as `finish`. If the target was enqueued meanwhile, lease it again for `lease_s` and return that lease; without
    `lease_s` leave it due.

    Nothing happens if the lease expired and another worker has leased the target.
    """
    own: dict[str, Any] = {"target": item.target, "until": item.until, "marks": item.marks, "lock": item.lock}
    with connection.cursor() as cursor:
        if next_at is None:
            cursor.execute(REMOVE, own)
            if cursor.rowcount:
                return None
        cursor.execute(FINISH, {**own, "next_at": next_at, "held": clock.frozen_at(), "lease_s": lease_s})
        row = cursor.fetchone()
    if row is None:
        _unlock(item)
        return None
    marks, until, now, _, request_id = row
    if marks == item.marks:
        return None
    return LeasedItem(item.target, marks, 0, until, _correction(now - clock.now()), item.lock, request_id)


def _unlock(item: LeasedItem) -> None:
    if item.lock is not None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [item.lock])


def _own_row(item: LeasedItem) -> QuerySet[WorkItem]:
    """Return the row, or nothing if the lease expired and another worker has leased the target."""
    return WorkItem.objects.filter(target=item.target, leased_until=item.until)


def fail(item: LeasedItem, error: Exception) -> float:
    """Schedule a retry with exponential back-off and jitter, or when the error says; return the seconds until then.

    If the target was enqueued meanwhile, its cause may be gone: the retry then comes after the first step at most.
    """
    delay_s = error.after_s if isinstance(error, Retryable) else None
    wait_s = delay_s if delay_s is not None else backoff(item.attempts)
    soon_s = min(wait_s, settings.RETRY_FIRST_S)
    again = Case(When(marks=item.marks, then=_in(wait_s)), default=_in(soon_s), output_field=DateTimeField())
    _own_row(item).update(
        due_at=again, leased_until=None, attempts=item.attempts + 1, error=str(error)[:2000], updated_at=database_now()
    )
    _unlock(item)
    return wait_s


def database_now() -> Expression:
    """Return the database's time as an expression for queries."""
    held = clock.frozen_at()
    return Now() if held is None else Value(held, output_field=DateTimeField())


def _in(seconds: float) -> ExpressionWrapper:
    return ExpressionWrapper(database_now() + timedelta(seconds=seconds), output_field=DateTimeField())


def backoff(attempts: int) -> float:
    """Return the seconds to wait after this many failures: doubling from `RETRY_FIRST_S` up to `RETRY_MAX_S`."""
    full = min(settings.RETRY_FIRST_S * 2.0 ** min(attempts, 30), float(settings.RETRY_MAX_S))
    return full * random.uniform(0.75, 1.0)  # noqa: S311 (spreads retries, guards nothing)


def process(target: str, reconcile: Callable[[str], datetime | None], lock: int | None = None) -> bool:
    """Lease the target and call `reconcile(target)`, which returns when to run next; return False if it was not leased.

    `lock` is the number of the advisory lock under which `reconcile` works: it need not wait for it if it is free.
    An exception is recorded on the row and not raised: the row schedules the retry.
    """
    item = lease(target, lock)
    if item is None:
        return False
    with structlog.contextvars.bound_contextvars(target=target), _session_ends_with_an_error():
        for _ in range(MAX_CONSECUTIVE_RUNS - 1):
            again = _run(item, reconcile, lease_s=settings.LEASE_S)
            if again is None:
                return True
            item = again
        if _run(item, reconcile, lease_s=None):
            wakeups.send([target])
    return True


@contextmanager
def _session_ends_with_an_error() -> Iterator[None]:
    """Close the connection if the block raises, since its session may have an advisory lock then."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _run(item: LeasedItem, reconcile: Callable[[str], datetime | None], *, lease_s: int | None) -> LeasedItem | None:
    """Reconcile once; return None, or what `_finish` returns if the target is due again at once.

    Log lines have the id of the last request that enqueued the target, and what `reconcile` enqueues has it too.
    """
    began = time.monotonic()
    known = {"request_id": item.request_id} if item.request_id else {}
    with structlog.contextvars.bound_contextvars(**known):
        again = _reconciled(item, reconcile, lease_s=lease_s)
        if known:
            log.info("workqueue.reconciled", ms=round(1000 * (time.monotonic() - began)))
    return again


def _reconciled(
    item: LeasedItem, reconcile: Callable[[str], datetime | None], *, lease_s: int | None
) -> LeasedItem | None:
    try:
        with clock.corrected(item.correction), nullcontext() if item.lock is None else holding(item.lock):
            next_at = reconcile(item.target)
    except Retryable as error:
        log.warning("workqueue.retry", error=str(error), again_s=round(fail(item, error), 3))
    except Permanent as error:
        log.warning("workqueue.refused", error=str(error), again_s=round(fail(item, error), 3))
    except Exception as error:
        log.exception("workqueue.failed", again_s=round(fail(item, error), 3))
    else:
        return _finish(item, next_at, lease_s=lease_s)
    return None


def sweep() -> int:
    """Wake workers for targets that are due, longest due first, behind those of what people do now; return how many."""
    targets = list(overdue().order_by("due_at").values_list("target", flat=True)[:SWEEP_LIMIT])
    wakeups.send(targets, wakeups.LAST)
    return len(targets)


def overdue() -> QuerySet[WorkItem]:
    """Return the targets that are due and not leased."""
    return WorkItem.objects.filter(
        Q(leased_until=None) | Q(leased_until__lte=database_now()), due_at__lte=database_now()
    )


def lag_s() -> float:
    """Return for how many seconds the longest overdue target has been waiting; 0 if there is none."""
    lag = ExpressionWrapper(database_now() - F("due_at"), output_field=DurationField())
    longest = overdue().order_by("due_at").values_list(lag, flat=True).first()
    return longest.total_seconds() if longest else 0.0
