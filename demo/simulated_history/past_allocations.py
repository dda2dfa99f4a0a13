"""Adds the allocations of a simulated history, all ended, each with its timeline."""

from collections.abc import Sequence

from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation, Transition
from demo.simulated_history.model import End, HeldAllocation
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering

BATCH = 1000
SIMULATED = "Simulated: nothing was held."
WORDS = {
    End.RELEASED: "Released.",
    End.EXPIRED: "Its time is over.",
    End.EVICTED: "Its node could not be used any more.",
}


def add(allocations: Sequence[HeldAllocation]) -> int:
    """Add the allocations, and for each that it was requested, active and ended; return how many. A fixed number of
    queries for each BATCH.
    """
    projects = dict(Project.objects.values_list("slug", "pk"))
    offerings = dict(Offering.objects.values_list("key", "pk"))
    people = dict(User.objects.values_list("username", "pk"))
    rows = [
        Allocation(
            id=one.id,
            name=one.name,
            number=None,
            project_id=projects[one.project],
            offering_id=offerings[one.offering],
            requested_by_id=people[one.member],
            count=one.count,
            labels=dict(one.labels),
            created_at=one.created_at,
            ends_at=one.ends_at,
            held_before=one.ended_at - one.held_at,
            held_until=one.ended_at,
            desired=Allocation.Desired.RELEASED,
            phase=Phase.ENDED,
            phase_since=one.ended_at,
            held_at=one.held_at,
            ended_at=one.ended_at,
            outcome=Outcome(one.end.value),
        )
        for one in allocations
    ]
    Allocation.objects.bulk_create(rows, batch_size=BATCH)
    entries = [entry for one in allocations for entry in _timeline(one)]
    Transition.objects.bulk_create(entries, batch_size=BATCH)
    return len(rows)


def _timeline(one: HeldAllocation) -> list[Transition]:
    steps = (
        ("requested", one.created_at, "", Phase.QUEUED, "", SIMULATED, one.member),
        ("phase", one.held_at, Phase.QUEUED, Phase.ACTIVE, "", SIMULATED, "portal"),
        ("phase", one.ended_at, Phase.ACTIVE, Phase.ENDED, one.end.value, WORDS[one.end], "portal"),
    )
    now = clock.now()
    return [
        Transition(
            allocation_id=one.id,
            at=at,
            recorded_at=now,
            type=type_,
            from_phase=before,
            to_phase=after,
            reason=reason,
            message=message,
            actor=actor,
        )
        for type_, at, before, after, reason, message, actor in steps
    ]
