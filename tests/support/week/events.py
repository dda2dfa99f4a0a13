"""Records a week as the watcher does: objects of Kubernetes, in the order in which they are heard of, some of them late
and some twice.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import groupby
from random import Random
from typing import NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS, Observation
from allocations.domain.custom_claim import BuiltClaim, CustomClaim
from allocations.models import Allocation
from allocations.projects import organization
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.metering import ledger_rollups
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Node, Offering
from quotas.costs import services as costs
from tests.support import capacity_bodies
from tests.support.clusters import LOCAL
from tests.support.week import bodies, hearing
from tests.support.week.bodies import LABELS, T0, Body, moment
from tests.support.week.plan import DAY, GPU, HIDDEN, NAMED, Job, Plan, Times, Use

ELSEWHERE = "elsewhere"
REVISION = 10**6
LISTED = ("Node", "ResourceSlice", "ResourceClaim", "Pod", "Workload", "ResourceQuota")
"""The kinds that are listed, in this order."""
BATCH_S = 600
"""How long the watcher's batches are."""


class Event(NamedTuple):
    """A change of an object at a second, which the watcher hears of ``late`` seconds afterwards."""

    at: int
    body: Body
    gone: bool = False
    late: int = 0

    @property
    def kind(self) -> str:
        return str(self.body["kind"])


def offer(plan: Plan) -> None:
    """Record the fleet as it is at the week's start, and offer all of it but HIDDEN."""
    with clock.frozen(T0):
        record_observations(LOCAL, list(_observations(Random(0), (one for one in of_fleet(plan) if one.at == 0))))
        reconcile_inventory(LOCAL)
        capacity_bodies.accept_all()
        _hide(HIDDEN)
        reconcile_inventory(LOCAL)


def hide(second: int, profiles: Iterable[str]) -> None:
    with clock.frozen(moment(second)):
        _hide(profiles)


def move_team(second: int) -> None:
    """Move the team of MOVED_PROJECTS to the department ELSEWHERE."""
    with clock.frozen(moment(second)):
        elsewhere = tenants.create_department(SYSTEM, ELSEWHERE, "Elsewhere")
        organization.change_team(SYSTEM, Team.objects.get(slug="vision"), {"department": elsewhere})


def set_prices(prices: Mapping[str, str], since: datetime) -> None:
    for name, amount in prices.items():
        costs.set_price(SYSTEM, Flavor.objects.get(name=flavors()[name]).name, amount, "EUR", since)


def _hide(profiles: Iterable[str]) -> None:
    for profile in profiles:
        for offering in Offering.objects.filter(flavor__name=flavors()["h100"], profile__startswith=profile):
            catalog.hide_offering(SYSTEM, offering, hidden=True)


def record(events: Sequence[Event], seed: int, times: Times, at_times: Mapping[int, Callable[[], None]]) -> None:
    """Record the events in batches, and the catalogue after each change of the fleet. In a gap nothing is heard; after
    it all is listed. ``at_times`` are functions to call at a second, or afterwards.
    """
    random = Random(seed)
    stops = dict(at_times)
    for gap in times.gaps:
        stops |= {gap.start: partial(_watched_until, gap.start), gap.end: partial(list_all, events, gap.end)}
    left = sorted(stops.items())
    live = (one for one in events if hearing.gap_at(one.at, times) is None)
    heard = sorted(enumerate(live), key=lambda one: (one[1].at + one[1].late, one[0]))
    batches = groupby(heard, key=lambda one: ((one[1].at + one[1].late) // BATCH_S, one[1].kind == "Node"))
    for (minute, _), batch in batches:
        while left and left[0][0] <= minute * BATCH_S:
            left.pop(0)[1]()
        observations = list(_observations(random, (event for _, event in batch)))
        with clock.frozen(moment((minute + 1) * BATCH_S)):
            record_observations(LOCAL, observations)
            if any(one.ref.kind in kinds.INVENTORY for one in observations):
                reconcile_inventory(LOCAL)
    for _, change in left:
        change()


def roll_up(second: int) -> None:
    """Roll up the hours that are due, as if all until now were heard of."""
    _watched_until(second)
    with clock.frozen(moment(second)):
        ledger_rollups.roll_up_due()


def list_again(events: Sequence[Event]) -> datetime:
    """List the objects that there are a day after the events, of every kind: the watcher knows them already. Return
    when that is.
    """
    now = max(one.at for one in events) + DAY
    _watched_until(now)
    list_all(events, now)
    return moment(now)


def _watched_until(now: int) -> None:
    """Record that the mirror is complete at this second."""
    with clock.frozen(moment(now)):
        record_sync(LOCAL, *((kind, REVISION, moment(now)) for kind in KINDS.values()))


def list_all(events: Iterable[Event], now: int) -> None:
    """List the objects that there are at this second, of every kind, and record the catalogue."""
    before = sorted((one for one in events if one.at < now), key=lambda one: one.at)
    last = {(one.kind, one.body["metadata"]["name"]): one for one in before}
    there = [one for one in last.values() if not one.gone]
    with clock.frozen(moment(now)):
        for kind in LISTED:
            of_kind = [one for one in there if one.kind == kind]
            found = [kinds.observe(KINDS[kind], one.body, at=moment(now), live=False) for one in of_kind]
            record_list(LOCAL, KINDS[kind], [one for one in found if one is not None], REVISION, moment(now))
        reconcile_inventory(LOCAL)


def _observations(random: Random, events: Iterator[Event]) -> Iterator[Observation]:
    for event in events:
        found = kinds.observe(KINDS[event.kind], event.body, at=moment(event.at), live=True, gone=event.gone)
        if found is not None:
            yield from [found] * random.choice([1, 1, 1, 1, 2])


def of_fleet(plan: Plan) -> Iterator[Event]:
    """Yield the changes of nodes, and of the ResourceSlices of those that have any."""
    for name, states in sorted(plan.nodes.items()):
        flavor = name.partition("-")[0]
        for revision, state in enumerate(states, 1):
            yield Event(state.start, bodies.node(name, flavor, revision, state), gone=state.state == "gone")
            if flavor in NAMED:
                is_gone = state.state == "unpublished"
                yield Event(state.start, bodies.resource_slice(name, revision, state), gone=is_gone)


def of_uses(plan: Plan, projects: Sequence[Project], member: User) -> Iterator[Event]:
    """Create the allocations, and yield the changes of the objects of all holds, Jobs and foreign use."""
    offerings = Offering.objects.select_related("flavor")
    by_flavor = {name: [one for one in offerings if one.flavor.name == flavor] for name, flavor in flavors().items()}
    rows, events = list[Allocation](), list[Event]()
    for use in plan.uses:
        if use.project is None:
            events += _foreign(use)
            continue
        [offering] = [one for one in by_flavor[use.flavor] if _is_of(use, one)]
        row = _allocation(use, projects[use.project], member, offering)
        rows.append(row)
        events += _by_dra(use, row) if use.devices else _by_quota(use, row, plan.times)
    Allocation.objects.bulk_create(rows)
    for job in plan.jobs:
        events += _of_job(job, projects[job.project])
    return iter(events)


def _is_of(use: Use, offering: Offering) -> bool:
    if use.is_custom or offering.kind == "claim":
        return use.is_custom and offering.kind == "claim"
    return offering.profile == use.devices[0].profile if use.devices else offering.resource == use.resource


def flavors() -> dict[str, str]:
    """Return the catalogue's name of each flavor of the plan."""
    rows = Node.objects.filter(name__in=[f"{name}-0" for name in LABELS])
    return {name.removesuffix("-0"): flavor for name, flavor in rows.values_list("name", "flavor__name")}


def _allocation(use: Use, project: Project, member: User, offering: Offering) -> Allocation:
    created = moment(use.span.start - 30)
    return Allocation(
        pk=allocation_key(use.number),
        name=f"a-{use.number}",
        number=use.number,
        project=project,
        offering=offering,
        requested_by=member,
        count=1 if use.is_custom else len(use.devices) or use.amount,
        claim=CustomClaim({}, BuiltClaim({"devices": {}}, {}, Fraction(1))).to_json() if use.is_custom else None,
        created_at=created,
        ends_at=moment(use.span.end),
        phase="queued",
        phase_since=created,
    )


def _by_dra(use: Use, row: Allocation) -> Iterator[Event]:
    """Yield the events of a claim and its holder, of which the end of the claim ends the hold."""
    claim, holder = bodies.claim(use, row), bodies.holder(row, use.devices[0].node)
    yield Event(use.span.start, claim, late=use.late)
    yield Event(use.span.start, holder, late=use.late)
    yield Event(use.span.end, claim, gone=True, late=use.late)


def _by_quota(use: Use, row: Allocation, times: Times) -> Iterator[Event]:
    hard = {f"requests.{use.resource}": str(use.amount)}
    body = bodies.new("ResourceQuota", names.hold_slot(row.number), row.project.namespace, labels=bodies.labels(row))
    body["metadata"]["annotations"] = {names.SLICES: json.dumps({row.name: {use.resource: use.amount}})}
    body |= {"spec": {"hard": hard}, "status": {"hard": hard}}
    if hearing.gap_at(use.span.start, times) is not None:
        yield Event(use.admitted, bodies.lease(use, row))
    yield Event(use.span.start, body, late=use.late)
    yield Event(use.span.end, body, gone=True, late=use.late)


def _foreign(use: Use) -> Iterator[Event]:
    name, where = f"f-{use.number}", "elsewhere"
    body = bodies.claim(use) if use.devices else bodies.pod(name, where, use.node, use.resource, use.amount)
    yield Event(use.span.start, body, late=use.late)
    yield Event(use.span.end, body, gone=True, late=use.late)


def _of_job(job: Job, project: Project) -> Iterator[Event]:
    """Yield the events of a Job's Workload, and of its pods: bound, and finished."""
    uid = job_uid(job)
    owner = {"kind": "Job", "name": f"j-{job.number}", "uid": uid, "controller": True}
    flavor, amount = flavors()["l40s"], len(job.pods) * job.per_pod
    assignment = {"name": "main", "count": len(job.pods), "flavors": {GPU: flavor}, "resourceUsage": {GPU: str(amount)}}
    workload = bodies.new("Workload", f"job-{job.number}", project.namespace, ownerReferences=[owner])
    workload |= {
        "spec": {"queueName": names.LOCAL_QUEUE, "podSets": []},
        "status": {"admission": {"clusterQueue": "team", "podSetAssignments": [assignment]}},
    }
    yield Event(job.span.start, workload, late=job.late)
    for number, span in enumerate(job.pods):
        name = f"j-{job.number}-{number}"
        pod = bodies.pod(name, project.namespace, "l40s-0", GPU, job.per_pod, ownerReferences=[owner])
        ended = {**pod, "status": {**pod["status"], "phase": "Succeeded"}}
        ended["metadata"] = {**pod["metadata"], "resourceVersion": "3"}
        yield Event(span.start, pod, late=job.late)
        yield Event(span.end, ended, late=job.late)
    yield Event(job.span.end, workload, gone=True, late=job.late)


def allocation_key(number: int) -> UUID:
    return uuid5(NAMESPACE_URL, f"allocation-{number}")


def job_uid(job: Job) -> str:
    return str(uuid5(NAMESPACE_URL, f"job-{job.number}"))
