"""Checks the final state against the API server, the database and the ledger. Each finding is one sentence.

Correct is: every allocation that nobody released is active, or queued because its team's quota is full, and the cluster
has exactly its objects; released allocations have ended, and none of their objects is left; the ledger shows as held
exactly what is held, no slot twice at a time, and as many seconds as the witness saw, except for what an outage hid.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from allocations.cluster import names
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core import clock
from portal.tenants.models import Project
from quotas.limits.models import Limit
from quotas.metering.models import UsageInterval
from tests.support.cluster.fixtures import Kubectl
from tests.support.faults.witness import Hold, Slot, Witness

KINDS = "workloads.kueue.x-k8s.io,resourceclaims,pods,resourcequotas,gpuprojects.gpu-portal.io"
SLACK_S = 3.0
"""The delay between an event and its record: times of Kubernetes are in whole seconds, and watcher and witness read
with delays of their own.
"""


def findings(projects: list[Project], kubectl: Kubectl) -> list[str]:
    """Return everything that is wrong at this moment."""
    rows = list(spec_of_row.rows().filter(project__in=projects))
    observed = Cluster(kubectl, projects)
    return [*_phases(rows), *_objects(rows, observed), *_orphans(rows, observed), *_ledger(rows, observed)]


class Cluster:
    """All objects of the projects that the API server has, read as its administrator."""

    def __init__(self, kubectl: Kubectl, projects: list[Project]) -> None:
        slugs = ",".join(project.slug for project in projects)
        answer = json.loads(kubectl("get", KINDS, "-A", "-l", f"gpu-portal.io/project in ({slugs})", "-o", "json"))
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {
            (o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]): o for o in answer["items"]
        }

    def get(self, kind: str, row: Allocation, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind, row.project.namespace, name))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [o for (k, _, _), o in self.objects.items() if k == kind]

    def devices(self, row: Allocation) -> set[str]:
        """Return ``pool/device`` of each device of the allocation's claim."""
        claim = self.get("ResourceClaim", row, row.name) or {}
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        return {f"{device['pool']}/{device['device']}" for device in results}

    def entry(self, row: Allocation) -> int:
        """Return the allocation's slices in its hold quota; 0 while the quota's status does not show them."""
        quota = self.get("ResourceQuota", row, names.hold_slot(row.number))
        if quota is None:
            return 0
        resource = row.offering.resource
        entries = json.loads(quota["metadata"].get("annotations", {}).get("gpu-portal.io/slices-of", "{}"))
        listed = sum(amounts.get(resource, 0) for amounts in entries.values())
        hard = int(quota.get("status", {}).get("hard", {}).get(f"requests.{resource}", 0))
        return int(entries.get(row.name, {}).get(resource, 0)) if hard == listed else 0


def _phases(rows: list[Allocation]) -> Iterator[str]:
    """Check the phases: active, or queued for quota; ended after release."""
    used = _units_held(rows)
    for row in rows:
        if row.desired == Allocation.Desired.RELEASED:
            if row.ended_at is None:
                yield f"{row.name} was given back and is {row.phase} ({row.reason})"
        elif row.phase == Phase.QUEUED:
            if not _is_full(row, used):
                yield f"{row.name} ({row.offering.key}) is queued ({row.reason}: {row.message}) beside free quota"
        elif row.phase != Phase.ACTIVE:
            yield f"{row.name} ({row.offering.key}) is {row.phase} ({row.reason})"


def _objects(rows: list[Allocation], observed: Cluster) -> Iterator[str]:
    """Check each live allocation's objects: a lease, and once active a claim and a holder, or its hold quota."""
    for row in rows:
        if row.desired == Allocation.Desired.RELEASED:
            continue
        active = row.phase == Phase.ACTIVE
        if observed.get("Workload", row, f"{row.name}-lease") is None:
            yield f"{row.name} has no lease"
        if row.offering.flavor.path == "dra":
            holder = observed.get("Pod", row, f"{row.name}-holder") or {}
            if active and len(observed.devices(row)) != row.count:
                yield f"{row.name} has {len(observed.devices(row))} devices instead of {row.count}"
            if active and holder.get("status", {}).get("phase") != "Running":
                yield f"{row.name} is active and its holder does not run"
        elif observed.entry(row) != (row.count if active else 0):
            yield f"{row.name} is {row.phase} and has {observed.entry(row)} slices in its hold quota"


def _orphans(rows: list[Allocation], observed: Cluster) -> Iterator[str]:
    """Find objects of the portal without a live allocation, and such entries of shared ones."""
    live = {(row.project.namespace, row.name): row for row in rows if row.ended_at is None}
    active = {key for key, row in live.items() if row.phase == Phase.ACTIVE}
    for (kind, namespace, name), manifest in observed.objects.items():
        metadata = manifest["metadata"]
        allocation = metadata.get("labels", {}).get("gpu-portal.io/allocation", "")
        if allocation and (namespace, allocation) not in (live if kind == "Workload" else active):
            yield f"{kind} {namespace}/{name} belongs to nobody"
        if "deletionTimestamp" in metadata:
            yield f"{kind} {namespace}/{name} is being deleted"
    expected: dict[str, set[str]] = defaultdict(set)
    for namespace, name in active:
        expected[namespace].add(name)
    for guard in observed.of_kind("GpuProject"):
        namespace = guard["metadata"]["namespace"]
        listed = set(guard["spec"].get("allocations", {}))
        if listed != expected[namespace]:
            yield f"the guard of {namespace} differs by {sorted(listed ^ expected[namespace])}"
    for quota in observed.of_kind("ResourceQuota"):
        namespace = quota["metadata"]["namespace"]
        entries = json.loads(quota["metadata"].get("annotations", {}).get("gpu-portal.io/slices-of", "{}"))
        if orphans := set(entries) - expected[namespace]:
            yield f"the quota {namespace}/{quota['metadata']['name']} lists {sorted(orphans)}"


def _ledger(rows: list[Allocation], observed: Cluster) -> Iterator[str]:
    """Check the ledger: open intervals equal the holds, no slot is held twice, and no hold is missing."""
    intervals = list(UsageInterval.objects.filter(holder_id__in=[row.pk for row in rows]))
    by_allocation: dict[object, list[UsageInterval]] = defaultdict(list)
    for interval in intervals:
        by_allocation[interval.holder_id].append(interval)
    for row in rows:
        own_intervals = by_allocation[row.pk]
        is_open = Counter(i.slot.removeprefix(f"{i.cluster_id}/") for i in own_intervals if i.end is None)
        held: set[str] = set()
        if row.phase == Phase.ACTIVE and row.ended_at is None:
            held = observed.devices(row) if row.offering.flavor.path == "dra" else {str(row.pk)}
        if is_open != Counter(held):
            yield f"{row.name} ({row.phase}) holds {sorted(held)} and is charged for {sorted(is_open)}"
        if (row.held_at is not None) != bool(own_intervals):
            was_held = "was held" if row.held_at else "was never held"
            yield f"{row.name} ({row.phase}, {row.reason}) {was_held} and has {len(own_intervals)} intervals"
    for slot in {interval.slot for interval in intervals}:
        yield from _overlaps(UsageInterval.objects.filter(slot=slot).order_by("start", "end"))


def _overlaps(intervals: Iterable[UsageInterval]) -> Iterator[str]:
    last: UsageInterval | None = None
    for interval in intervals:
        if last is not None and (last.end is None or interval.start < last.end):
            yield f"{interval.slot} is held twice from {interval.start:%T}"
        last = interval


def misbilled(
    projects: list[Project], witness: Witness, hidden_s: float, unwatched: Sequence[tuple[float, float]]
) -> list[str]:
    """Return holds whose billed seconds differ from the witness' by more than the outage hid.

    ``hidden_s`` is the longest time without a watch; it counts only for intervals that the ledger marks as estimated.
    What began and ended within one of the ``unwatched`` times, in seconds since the epoch, may be unknown.
    """
    now = clock.now()
    return [
        sentence
        for slot, intervals, holds in bills(projects, witness)
        for sentence in _misbilled(slot, intervals, holds, now, hidden_s, unwatched)
    ]


def bills(projects: list[Project], witness: Witness) -> Iterator[tuple[Slot, list[UsageInterval], list[Hold]]]:
    """Yield each slot with its intervals in the ledger and its holds as the witness saw them, both by time."""
    ids = {row.pk: row for row in spec_of_row.rows().filter(project__in=projects)}
    ledger: dict[Slot, list[UsageInterval]] = defaultdict(list)
    for interval in UsageInterval.objects.filter(holder_id__in=list(ids)).order_by("start", "recorded_at"):
        row = ids[interval.holder_id]
        device = interval.slot.removeprefix(f"{interval.cluster_id}/") if row.offering.flavor.path == "dra" else ""
        ledger[Slot(row.project.namespace, row.name, device)].append(interval)
    ours = {(row.project.namespace, row.name) for row in ids.values()}
    truth = {slot: holds for slot, holds in list(witness.holds.items()) if holds and slot[:2] in ours}
    for slot in sorted({*ledger, *truth}):
        yield slot, ledger[slot], truth.get(slot, [])


def told(interval: UsageInterval) -> str:
    """Return when it was held by the ledger, what showed each bound, and when it was recorded."""
    start = f"{interval.start}{' (estimated)' * interval.estimated_start} by {interval.source_start}"
    end = f"{interval.end}{' (estimated)' * interval.estimated_end} by {interval.source_end}"
    return f"from {start} until {end}, recorded at {interval.recorded_at}"


def _misbilled(
    slot: Slot,
    intervals: list[UsageInterval],
    holds: list[Hold],
    now: datetime,
    hidden_s: float,
    unwatched: Sequence[tuple[float, float]],
) -> Iterator[str]:
    billed = sum(((i.end or now) - i.start).total_seconds() for i in intervals)
    at = now.timestamp()
    least = sum(end - start for hold in holds if not _is_within(hold, unwatched) for start, end in [hold.shortest(at)])
    most = sum(end - start for hold in holds for start, end in [hold.longest(at)])
    guesses = sum(i.estimated_start + i.estimated_end for i in intervals)
    slack = SLACK_S * max(1, len(holds), len(intervals)) + hidden_s * guesses
    if not least - slack <= billed <= most + slack:
        yield (
            f"{slot.namespace}/{slot.allocation} {slot.device} is billed {billed:.1f} s, was held {least:.1f} to "
            f"{most:.1f} s: billed {'; '.join(map(told, intervals))}; seen {holds}"
        )


def _units_held(rows: list[Allocation]) -> Counter[tuple[int, int]]:
    """Return the slices held by (team, pool): every pool of the demo fleet has one offering here."""
    teams = {row.project.team_id for row in rows}
    everyone = Allocation.objects.filter(project__team__in=teams, phase=Phase.ACTIVE)
    used: Counter[tuple[int, int]] = Counter()
    for team, pool, count in everyone.values_list("project__team", "offering__pool", "count"):
        used[team, pool] += count
    return used


def _is_full(row: Allocation, used: Counter[tuple[int, int]]) -> bool:
    team_and_pool = (row.project.team_id, row.offering.pool_id)
    nominal = Limit.objects.get(team_id=team_and_pool[0], pool_id=team_and_pool[1]).nominal
    return used[team_and_pool] + row.count > nominal


def _is_within(hold: Hold, times: Sequence[tuple[float, float]]) -> bool:
    """Return whether all that is certain of a hold lies within one of the times."""
    return hold.ended is not None and any(first <= hold.began[1] and hold.ended[0] <= last for first, last in times)
