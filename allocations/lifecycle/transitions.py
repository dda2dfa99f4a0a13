"""Writes the derived columns of allocations and their timeline; nothing else does.

Each function updates the row by compare-and-swap and appends a Transition in the same transaction. If the row changed
meanwhile, it does nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from allocations.cluster.manifests import lease
from allocations.domain.held_time import Interval
from allocations.domain.observed import ObservedAllocation, Shared
from allocations.domain.phases import Ending, Facts, Phase, derive, failed_start, outcome
from allocations.lifecycle import held_intervals, overtime, slot_numbers, spec_of_row
from allocations.lifecycle.held_intervals import HeldIntervals
from allocations.models import Allocation, Transition
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.writing import KeyOf, WriteStatement, write_rows
from portal.events.models import Event
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.limits import counting

START_TRIES = 3
# One statement needs no transaction around it.
UPDATE = """
    WITH changed AS (
        UPDATE allocations_allocation SET {columns}
        WHERE id = %s AND phase = %s AND reason = %s AND ended_at IS NOT DISTINCT FROM %s
        RETURNING id
    )
"""
UPDATE_TIME = "UPDATE allocations_allocation SET {columns} WHERE id = %s AND hours IS NOT DISTINCT FROM %s"
UPDATE_SHARED = "UPDATE allocations_allocation SET in_guard = %s, in_quota = %s WHERE id = %s RETURNING id"
ENTRY = {
    "at": "%s::timestamptz",
    "recorded_at": "%s::timestamptz",
    **dict.fromkeys(("type", "from_phase", "to_phase", "reason", "message", "actor"), "%s"),
    "evidence": "%s::jsonb",
}
"""The columns of a Transition, and how their values are written."""
APPEND = """
    , appended AS (
        INSERT INTO allocations_transition (allocation_id, {columns})
        SELECT changed.id, {columns} FROM changed, (VALUES {entries}) AS entry (number, {columns}) ORDER BY number
        RETURNING id, at, type, to_phase, actor
    )
    INSERT INTO events_event (at, kind, actor, subject, project, team, cluster, scope, transition)
    SELECT at, 'allocation.' || CASE type WHEN 'phase' THEN to_phase ELSE type END, actor, %s, %s, %s, %s, 'project', id
    FROM appended ORDER BY id
"""


def append(row: Allocation, type_: str, *, actor: str, **values: Any) -> Transition:
    """Append a Transition to the allocation's timeline and return it; ``values`` are those of ``transition``."""
    found = transition(row, type_, actor=actor, **values)
    write_rows([found, event_of(found)])
    return found


def transition(
    row: Allocation,
    type_: str,
    *,
    actor: str = "portal",
    from_phase: str = "",
    to_phase: str = "",
    reason: str = "",
    message: str = "",
    at: datetime | None = None,
    evidence: dict[str, Any] | None = None,
) -> Transition:
    """Return a Transition that is not saved; phases are the row's, unless set."""
    now = clock.now()
    return Transition(
        allocation=row,
        at=at or now,
        recorded_at=now,
        type=type_,
        from_phase=from_phase or (row.phase if type_ != "requested" else ""),
        to_phase=to_phase or row.phase,
        reason=reason,
        message=message[:1000],
        actor=actor,
        evidence=evidence or {},
    )


def event_of(found: Transition) -> Event:
    """Return the event of a transition that is written in the same statement before it."""
    row = found.allocation
    subject, project, team, cluster = _event_place(row)
    return Event(
        at=found.at,
        kind=f"allocation.{found.to_phase if found.type == 'phase' else found.type}",
        actor=found.actor,
        subject=subject,
        project=project,
        team=team,
        cluster=cluster,
        scope=Event.Scope.PROJECT,
        transition=KeyOf(found),
    )


def _event_place(row: Allocation) -> tuple[str, str, str, str]:
    project = row.project
    return str(row.pk), project.slug, project.team.slug, project.cluster_id


def end(row: Allocation, ending: Ending, reason: str, message: str, *, actor: str) -> bool:
    """Set the intent to end the allocation; return False if it was set before, or if it was extended meanwhile.

    Its phase is then ``releasing``, unless nothing of it was on the cluster yet since it is scheduled. What it has held
    past its end is flagged if the portal should have ended it before (``overtime``).
    """
    now = clock.now()
    late_since = overtime.since(row, now)
    with transaction.atomic():
        held = Allocation.objects.filter(pk=row.pk, desired=Allocation.Desired.HELD)
        if ending is Ending.EXPIRED:
            held = held.filter(hours=row.hours, ends_at=row.ends_at)
        changed = held.update(desired=Allocation.Desired.RELEASED, ending=ending.value)
        if not changed:
            return False
        row.refresh_from_db(fields=["phase", "desired", "ending"])
        words = overtime.record(row, late_since, now) if late_since else ""
        append(row, "end", actor=actor, reason=reason, message=f"{message} {words}".rstrip())
        if row.phase != Phase.SCHEDULED:
            _record_releasing(row)
    return True


def _record_releasing(row: Allocation) -> None:
    """Write what the phase is as soon as the intent is set, without a look at the cluster."""
    now = clock.now()
    verdict = derive(Facts(now, released=True))
    words = {"phase": verdict.phase.value, "reason": verdict.reason, "message": verdict.message}
    append(row, "phase", actor="portal", to_phase=words["phase"], reason=verdict.reason, message=verdict.message)
    changes = {**words, "phase_since": now, "phase_until": verdict.until}
    Allocation.objects.filter(pk=row.pk).update(**changes)
    for field, value in changes.items():
        setattr(row, field, value)


def start_failed(row: Allocation, reason: str, detail: str) -> bool:
    """Record that an admitted allocation could not start, for a ``reason`` of FAILED_STARTS; return whether it was
    recorded.

    It backs off, twice as long each time. After START_TRIES failures it needs attention of its owner. ``detail`` is the
    cluster's message.
    """
    failures = row.start_failures + 1
    needs_attention = failures >= START_TRIES
    wait = timedelta(seconds=settings.START_BACKOFF_S) * 2 ** (failures - 1)
    message = f"{failed_start(reason, detail)} (try {failures} of {START_TRIES}): {detail}"
    with transaction.atomic():
        changed = Allocation.objects.filter(pk=row.pk, start_failures=row.start_failures).update(
            start_failures=failures,
            needs_attention=needs_attention,
            not_before=clock.now() + wait,
            reason=reason,
            message=message[:1000],
        )
        if changed:
            append(row, "start_failed", actor="portal", reason=reason, message=message)
    row.refresh_from_db(fields=["start_failures", "needs_attention", "not_before", "reason", "message"])
    return bool(changed)


def record_time(row: Allocation, state: ObservedAllocation, intervals: HeldIntervals | None = None) -> bool:
    """Write how long the allocation was held, according to the ledger, and the end of its hours; return whether
    something changed. Without ``intervals``, the ledger is read.

    The end of what is being released stays as it was.
    """
    earlier = spec_of_row.time(row)
    held = earlier.held.with_intervals(_intervals(row, state, intervals or held_intervals.read(row.pk)))
    changes: dict[str, Any] = {"held_before": held.before, "held_until": held.until, "held_since": held.since}
    if row.hours is not None and row.desired == Allocation.Desired.HELD:
        changes["ends_at"] = replace(earlier, held=held).end
    if all(getattr(row, column) == value for column, value in changes.items()):
        return False
    # Not if it was extended meanwhile: then it is reconciled again.
    sql = UPDATE_TIME.format(columns=_assignments(changes))
    with connection.cursor() as cursor:
        cursor.execute(sql, [*changes.values(), row.pk, row.hours])
        changed = bool(cursor.rowcount)
    if changed:
        for column, value in changes.items():
            setattr(row, column, value)
    return changed


def _intervals(row: Allocation, state: ObservedAllocation, intervals: HeldIntervals) -> list[Interval]:
    """Return the time in which the allocation was held, as far as it is not counted yet.

    What is held with admin access is in no interval of the ledger, so its present hold is as the cluster shows it.
    """
    found: list[Interval] = [(interval.start, interval.end) for interval in intervals.latest]
    if state.held and not any(one.is_charged for one in state.held):
        begins = [one.since for one in state.held if one.since]
        found.append((row.held_since or min(begins, default=state.facts.now), None))
    elif row.held_since is not None and intervals.first_start is None:
        found.append((row.held_since, state.facts.now))
    return found


def record_shared(row: Allocation, shared: Shared, *, is_due: bool) -> None:
    """Write which of its project's objects should have the allocation, and if it ``is_due`` have the project
    reconciled; in one statement, none if neither is needed.
    """
    statements = [workqueue.enqueue_statement(targets.project(row.project.cluster_id, row.project.slug))] * is_due
    if (row.in_guard, row.in_quota) != shared:
        statements.append(WriteStatement(UPDATE_SHARED, [*shared, row.pk], ("id",)))
        row.in_guard, row.in_quota = shared
    if statements:
        enqueued, *_ = write_rows([], *statements)
        if is_due:
            workqueue.wake(enqueued)


def record_phase(row: Allocation, state: ObservedAllocation, intervals: HeldIntervals | None = None) -> None:
    """Write the derived phase; if phase or reason changed, append a Transition with the object that shows it.

    Without ``intervals``, the ledger is read where the start of the hold is not known yet.
    """
    verdict = derive(state.facts)
    held_at = row.held_at
    ended = verdict.phase is Phase.ENDED
    # A hold may have started and ended between two reconciles, and only the ledger has it.
    if held_at is None and (state.occupied or ended or row.held_until is not None):
        held_at = (intervals or held_intervals.read(row.pk)).first_start
    # An ended allocation stays ended: a pod observed later is deleted, and neither reopens nor ends it again.
    is_new = (verdict.phase, verdict.reason) != (row.phase, row.reason) and not ended and row.ended_at is None
    is_end = ended and row.ended_at is None
    has_new_message = not ended and row.ended_at is None and verdict.message[:1000] != row.message
    until = None if row.ended_at or ended else verdict.until
    if not (is_new or is_end or has_new_message or held_at != row.held_at or until != row.phase_until):
        return
    now = clock.now()
    changes: dict[str, Any] = {"held_at": held_at, "phase_until": until}
    if has_new_message:
        changes["message"] = verdict.message[:1000]
    if verdict.phase is Phase.ACTIVE:
        changes["start_failures"] = 0
    if is_new:
        changes |= {"phase": verdict.phase.value, "reason": verdict.reason, "message": verdict.message[:1000]}
        if verdict.phase != row.phase:
            # The time of ``assess``: with another one the start deadline, counted from it, would be written again.
            changes["phase_since"] = state.facts.now
    elif is_end:
        reason, message = _last_end(row)
        changes |= {
            "phase": Phase.ENDED.value,
            "phase_since": now,
            "ended_at": now,
            "outcome": outcome(Ending(row.ending), was_held=held_at is not None).value,
            "reason": reason,
            "message": message,
        }
    entries = _entries(row, state, changes) if is_new or is_end else []
    if is_end:
        with transaction.atomic(), advisory_lock("limits", shared=True):
            changed = _write(row, changes, entries)
            if changed:
                counting.release(row.pk)
                if row.number is not None:
                    slot_numbers.wake_waiting(row.project)
    else:
        changed = _write(row, changes, entries)
    if changed:
        for field, value in changes.items():
            setattr(row, field, value)


def _last_end(row: Allocation) -> tuple[str, str]:
    """Return why the allocation was ended the last time: reason and message, empty if it was not."""
    last = row.transitions.filter(type="end").order_by("-id").values_list("reason", "message").first()
    return last or ("", "")


def _entries(row: Allocation, state: ObservedAllocation, changes: Mapping[str, Any]) -> list[Transition]:
    """Return the transitions of a changed phase: two if the phase ``starting`` was over before a reconcile."""
    phase, was = changes["phase"], row.phase
    entries = []
    if phase == Phase.ACTIVE and was == Phase.QUEUED:
        entries, was = [_admission(row, state)], Phase.STARTING.value
    at = changes["held_at"] if phase == Phase.ACTIVE and row.held_at is None else None
    words = {"reason": changes["reason"], "message": changes["message"]}
    evidence = _evidence(row, state)
    return [*entries, transition(row, "phase", from_phase=was, to_phase=phase, at=at, evidence=evidence, **words)]


def _admission(row: Allocation, state: ObservedAllocation) -> Transition:
    """Return the transition to ``starting``, with the time of the lease's condition."""
    at = state.lease.admitted_at
    ref = lease.ref(spec_of_row.resolved_spec(row))
    return transition(
        row,
        "phase",
        to_phase=Phase.STARTING.value,
        reason="admitted",
        message="Admitted by Kueue.",
        at=max(at, row.phase_since) if at else None,
        evidence={"kind": ref.kind, "name": ref.name, "resource_version": state.revision(ref)},
    )


def _assignments(columns: Iterable[str]) -> str:
    return ", ".join(f"{column} = %s" for column in columns)


def _write(row: Allocation, changes: Mapping[str, Any], entries: Sequence[Transition]) -> bool:
    """Write ``changes`` to the row and append ``entries`` in one statement, unless its phase has changed meanwhile;
    return whether it was written.
    """
    update = UPDATE.format(columns=_assignments(changes))
    values: list[Any] = [*changes.values(), row.pk, row.phase, row.reason, row.ended_at]
    for number, one in enumerate(entries):
        values += [number, *(getattr(one, column) for column in list(ENTRY)[:-1]), json.dumps(one.evidence)]
    places = ", ".join([f"(%s, {', '.join(ENTRY.values())})"] * len(entries))
    append_entries = APPEND.format(columns=", ".join(ENTRY), entries=places) if entries else "SELECT FROM changed"
    values += _event_place(row) if entries else ()
    with connection.cursor() as cursor:
        cursor.execute(f"{update} {append_entries}", values)
        return bool(cursor.rowcount)


def _evidence(row: Allocation, state: ObservedAllocation) -> dict[str, Any]:
    shown = state.held or state.occupied
    ref = shown[0].evidence if shown and shown[0].evidence else lease.ref(spec_of_row.resolved_spec(row))
    return {"kind": ref.kind, "name": ref.name, "resource_version": state.revision(ref)}
