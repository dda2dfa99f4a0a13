"""Write operations on allocations: request, release, extend, retry.

Each checks permission, writes the intent with a Transition, and enqueues the target, in one transaction. The cluster is
called only to validate an operator's CEL in a custom claim (``allocations.requests.custom_claims``).
"""

import secrets
from decimal import Decimal

from django.db import IntegrityError, transaction

from allocations.cluster import names
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import spec_of_row, transitions
from allocations.models import Allocation
from allocations.requests.audit import record_action, request_entry
from allocations.requests.decision import Decision, ValidRequest, decide, validate
from allocations.requests.period import MAX_DURATION
from allocations.requests.preview import explain
from portal.audit import entries
from portal.core import clock
from portal.core.errors import Busy, Invalid, Refused
from portal.core.locks import Lock, advisory_locks
from portal.core.quotation import quoted
from portal.core.writing import write_rows
from portal.tenants import access
from portal.tenants.models import User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.limits import counting


def request(user: User, spec: AllocationRequest) -> Allocation:
    """Create an allocation, queued or scheduled, and return it.

    Raises Invalid (400), NotVisible (404), Forbidden (403), Refused (409, with violations and alternatives), Busy.
    """
    valid = validate(user, spec)
    with (
        transaction.atomic(),
        advisory_locks(
            Lock(("limits",), shared=True),  # excludes changes of limits
            Lock(("live", spec.project)),  # excludes requests in the same project
        ),
    ):
        decision = decide(valid)
        if decision.is_archived:
            raise Refused(
                "wrong_phase",
                f"The project {spec.project} is archived.",
                "Choose another project.",
            )
        if not decision.violations:
            return _granted(valid, decision)
    raise _refusal(decision)


def _granted(valid: ValidRequest, decision: Decision) -> Allocation:
    """Create the allocation, count it against its limits, and enqueue it. Raises Refused, Busy."""
    row = draft(decision)
    row.number = None if row.starts_at else decision.number
    try:
        counting.grant(row.pk, decision.limits, decision.demand)
    except counting.LimitReached as error:  # by a concurrent request in another project
        latest = decide(valid)
        raise (
            _refusal(latest) if latest.violations else Busy("Other requests need the same limit at this moment.")
        ) from error
    _create(row)
    return row


def _refusal(decision: Decision) -> Refused:
    first = decision.violations[0]
    return Refused(
        first.reason,
        first.detail,
        first.hint,
        violations=decision.violations,
        alternatives=[alternative.document() for alternative in explain(decision).alternatives],
    )


def release(user: User, row: Allocation, reason: str = "") -> Allocation:
    """Release the allocation and return it. If it is ending or has ended, nothing changes. Raises Forbidden."""
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    with transaction.atomic():
        before = {"desired": row.desired}
        message = quoted(reason) if reason else f"Released by {user.username}."
        if transitions.end(row, Ending.PERSON, "released", message, actor=user.username):
            record_action(
                user.username, "release", row, before=before, after={"desired": row.desired, "reason": reason}
            )
            cluster = row.project.cluster_id
            workqueue.enqueue(targets.allocation(cluster, row.pk), targets.project(cluster, row.project.slug))
    return row


def extend(user: User, row: Allocation, hours: Decimal) -> Allocation:
    """Let the allocation be held for so many hours more, or end so much later if a date was asked, and return it.

    Raises Forbidden, Invalid; Refused ``wrong_phase`` if it is ending or has ended.
    """
    access.require(user, "allocation.extend", row.project.team, row.requested_by)
    if not 0 < hours <= MAX_DURATION.days * 24:
        raise Invalid({"hours": [f"Give a number above 0, at most {MAX_DURATION.days * 24}."]}, reason="time_invalid")
    with transaction.atomic():
        locked = Allocation.objects.select_for_update().get(pk=row.pk)
        locked.project = row.project
        if locked.desired == Allocation.Desired.RELEASED:
            raise Refused("wrong_phase", f"{row.name} is {locked.phase}; it cannot be extended.", "Ask for a new one.")
        before = spec_of_row.time(locked)
        after = before.extended(hours)
        if after.expected_end(now := clock.now()) - max(now, after.begins_at) > MAX_DURATION:
            raise Invalid({"hours": [f"At most {MAX_DURATION.days} days may be left of it."]}, reason="time_invalid")
        Allocation.objects.filter(pk=row.pk).update(hours=after.hours, ends_at=after.end)
        message = f"Now {after.in_words()}; before, {before.in_words()}."
        transitions.append(locked, "extended", actor=user.username, reason="extended", message=message)
        column = "ends_at" if after.hours is None else "hours"
        changes = ({column: getattr(time, column)} for time in (before, after))
        record_action(user.username, "extend", row, before=next(changes), after=next(changes))
        workqueue.enqueue(targets.allocation(row.project.cluster_id, row.pk))
    row.refresh_from_db()
    return row


def retry(user: User, row: Allocation) -> Allocation:
    """Queue an allocation again whose start failed too often, and return it. It waits for the rest of the pause after
    its last try, so that who retries at once is no faster than the portal.

    Raises Forbidden; Refused ``wrong_phase`` if it does not need attention.
    """
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    with transaction.atomic():
        changed = Allocation.objects.filter(pk=row.pk, needs_attention=True, desired=Allocation.Desired.HELD).update(
            needs_attention=False, start_failures=0
        )
        if not changed:
            raise Refused(
                "wrong_phase", f"{row.name} does not need attention.", "Only a suspended allocation can be retried."
            )
        transitions.append(row, "retried", actor=user.username, reason="retried", message="Queues again.")
        record_action(
            user.username, "retry", row, before={"start_failures": row.start_failures}, after={"start_failures": 0}
        )
        workqueue.enqueue(targets.allocation(row.project.cluster_id, row.pk))
    row.refresh_from_db()
    return row


def draft(decision: Decision) -> Allocation:
    """Return the row that the request would create, not saved, with a generated name if the request has none."""
    name = decision.spec.name or names.suggest(decision.spec.offering, secrets.token_hex(3))
    period = decision.period
    spec = decision.spec.to_spec(
        name=name,
        starts_at=period.starts_at,
        hours=period.hours,
        ends_at=period.ends_at,
        give_up_at=period.give_up_at,
        claim=decision.claim,
    )
    return Allocation(
        project=decision.project,
        offering=decision.offering,
        requested_by=decision.user,
        created_at=decision.at,
        **spec_of_row.columns(spec),
        phase=Phase.SCHEDULED.value if period.starts_at else Phase.QUEUED.value,
        phase_since=decision.at,
        phase_until=period.starts_at,
    )


def _create(row: Allocation) -> None:
    """Save the row with its first transition and its audit entry, and enqueue it. Raises Refused ``name_taken``."""
    actor = row.requested_by.username
    requested = transitions.transition(row, "requested", actor=actor, to_phase=row.phase, message=_summary(row))
    audited = request_entry(actor, row)
    rows = [row, requested, transitions.event_of(requested), audited]
    target = targets.allocation(row.project.cluster_id, row.pk)
    try:
        (enqueued,) = write_rows(rows, workqueue.enqueue_statement(target, at=row.starts_at))
    except IntegrityError as error:  # no savepoint: the block of `request` is rolled back
        if "allocation_name_unique_live" not in str(error):
            raise
        raise Refused(
            "name_taken",
            f"The project {row.project.slug} has an allocation named {row.name} that has not ended.",
            "Choose another name, or leave it out to get a generated one. This one is free again when that has ended.",
        ) from error
    entries.log(audited)
    workqueue.wake(enqueued)


def _summary(row: Allocation) -> str:
    requested = f"{row.slices} × {row.offering.key} {spec_of_row.time(row).in_words()}"
    return f"{requested}: {quoted(row.purpose)}" if row.purpose else f"{requested}."
