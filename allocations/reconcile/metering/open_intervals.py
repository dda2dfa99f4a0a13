"""Compares the open intervals of the ledger with the mirror: what is held now, and what uses GPUs now.

One transaction writes both, so they differ only if something is wrong, or for seconds while an interval waits for the
end of another one in its slot.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from django.db.models import Q

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.domain.objects import Ref, Slice, Snapshot
from allocations.domain.observed_facts import claim_facts, pod_facts, quota_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.metering import job_usage, ledger, unbilled
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.metering.balance import Check, Failure
from quotas.metering.models import ForeignUse, UsageInterval


class _State(NamedTuple):
    """What a cluster has now: open intervals, open foreign use, allocations that may hold something, GPU pods and
    claims, and what shows holds, by namespace.
    """

    cluster: str
    usage: Sequence[UsageInterval]
    foreign: Mapping[tuple[str, str], ForeignUse]
    allocations: Sequence[Allocation]
    pods: Sequence[MirrorObject]
    claims: Sequence[MirrorObject]
    snapshots: Mapping[str, Snapshot]


def differences(cluster: str) -> list[Failure]:
    """Return what the ledger has open and the mirror does not show held, and the reverse; a fixed number of queries."""
    state = _read(cluster)
    return [*_missing(state), *_gone(state), *_without_category(state), *_foreign_gone(state)]


def _read(cluster: str) -> _State:
    snapshots = defaultdict(Snapshot, mirror.of_holds(cluster))
    claims = {one.allocation for snapshot in snapshots.values() for one in snapshot.of_kind("ResourceClaim")}
    quotas = chain.from_iterable(snapshot.of_kind("ResourceQuota") for snapshot in snapshots.values())
    listed = {name for quota in quotas for name in quota_facts(quota).get("slices", ())}
    usage = list(UsageInterval.objects.filter(cluster=cluster, end=None))
    held = Q(pk__in={row.holder_id for row in usage}) | Q(name__in=claims | listed)
    objects = MirrorObject.objects.filter(cluster=cluster)
    return _State(
        cluster=cluster,
        usage=usage,
        foreign={(row.uid, row.slot): row for row in ForeignUse.objects.filter(cluster=cluster, end=None)},
        allocations=list(spec_of_row.rows().filter(held, project__cluster=cluster, ended_at=None)),
        pods=list(objects.filter(kind="Pod").exclude(facts__gpus={})),
        claims=list(objects.filter(kind="ResourceClaim").exclude(facts__devices=[])),
        snapshots=snapshots,
    )


def _missing(state: _State) -> Iterator[Failure]:
    """Yield held slices without an open interval, and queued Jobs whose reservation is not charged as it is."""
    for row, held in ledger.missing_intervals(state.allocations, state.snapshots):
        words = f"Allocation {row} holds {_slice(row, held)}, and the ledger has no open interval of it."
        values = {"flavor": row.offering.flavor.name, "node": held.node, "name": f"{state.cluster}/{held.slot}"}
        yield _failure(state, Check.HELD_AS_OBSERVED, "an open interval", "none", words, **values)
    for namespace, job in sorted(unbilled.jobs(state.cluster)):
        words = f"The Job {job} in {namespace} has reserved another amount than the ledger has open."
        yield _failure(state, Check.HELD_AS_OBSERVED, "as reserved", "another amount", words, name=job)


def _gone(state: _State) -> Iterator[Failure]:
    """Yield open intervals of slices that the mirror does not show held."""
    gone = {interval.slot for _, interval in ledger.gone_intervals(state.allocations, state.snapshots)}
    live = {row.pk for row in state.allocations}
    used = {slot for _, slot in _used(state)}
    for one in state.usage:
        is_jobs = not one.member
        if one.unused or (one.slot in used if is_jobs else one.holder_id in live and one.slot not in gone):
            continue
        holder = f"{'Job' if is_jobs else 'allocation'} {one.holder_id} of project {one.project}"
        words = f"The ledger has {one.slot} held by {holder}, and the cluster does not show it held."
        values = {"flavor": one.flavor, "node": one.node, "name": one.slot}
        found = f"open since {one.start:%F %T} UTC"
        yield _failure(state, Check.HELD_AS_OBSERVED, "no open interval", found, words, **values)


def _used(state: _State) -> set[tuple[str, str]]:
    """Return uid and slot of what bound pods use, and of the devices that are allocated to claims."""
    prefix = job_usage.pod_slot_prefix(state.cluster)
    bound = [(pod.uid, facts) for pod in state.pods if job_usage.is_bound(facts := pod_facts(pod))]
    of_pods = {(uid, f"{prefix}{uid}/{name}") for uid, facts in bound for name in facts["gpus"]}
    devices = ((claim.uid, device) for claim in state.claims for device in claim_facts(claim).get("devices", ()))
    return of_pods | {(uid, job_usage.device_slot(state.cluster, device)) for uid, device in devices}


def _without_category(state: _State) -> Iterator[Failure]:
    """Yield GPU pods and claims that have neither an open interval nor open foreign use.

    A claim of a live allocation counts as idle until the allocation is held.
    """
    open_slots, holders = {row.slot for row in state.usage}, {row.holder_id for row in state.usage}
    held = [row for row in state.allocations if row.pk in holders]
    by_label = {(row.project.namespace, row.name) for row in held}
    by_class = {(row.project.namespace, names.hold_slot(row.number)) for row in held}
    starting = {ref for row in state.allocations for ref in _claims(row)}
    for pod in state.pods:
        facts = pod_facts(pod)
        keys = {(pod.namespace, pod.allocation)} & by_label | {(pod.namespace, facts.get("class", ""))} & by_class
        for name in facts["gpus"] if job_usage.is_bound(facts) and not keys else ():
            slot = f"{job_usage.pod_slot_prefix(state.cluster)}{pod.uid}/{name}"
            if slot not in open_slots and (pod.uid, slot) not in state.foreign:
                yield _uncategorized(state, pod, facts["node"], name)
    for claim in state.claims:
        is_starting = Ref("ResourceClaim", claim.namespace, claim.name) in starting
        for device in claim_facts(claim).get("devices", ()) if not is_starting else ():
            slot = job_usage.device_slot(state.cluster, device)
            is_known = slot in open_slots or (claim.uid, slot) in state.foreign
            if device["driver"] == DRA_DRIVER and not is_known:
                yield _uncategorized(state, claim, device["pool"], device["device"])


def _claims(row: Allocation) -> Sequence[Ref]:
    spec = spec_of_row.resolved_spec(row)
    return registry.backend_of(spec).claims(spec)


def _foreign_gone(state: _State) -> Iterator[Failure]:
    """Yield open foreign use that the mirror does not show."""
    for key in sorted(state.foreign.keys() - _used(state)):
        row = state.foreign[key]
        words = f"The ledger has {row.name} of node {row.node} used by {row.namespace}/{row.consumer}, and it is not."
        found = f"open since {row.start:%F %T} UTC"
        yield _failure(state, Check.USE_HAS_CATEGORY, "no open use", found, words, node=row.node, name=row.name)


def _uncategorized(state: _State, used_by: MirrorObject, node: str, name: str) -> Failure:
    subject = f"{used_by.kind} {used_by.namespace}/{used_by.name}"
    words = f"{subject} uses {name} of node {node}, and the ledger has it neither as held nor as unmanaged."
    return _failure(state, Check.USE_HAS_CATEGORY, "held or unmanaged", "neither", words, node=node, name=name)


def _failure(
    state: _State, check: Check, expected: str, found: str, message: str, *, name: str, flavor: str = "", node: str = ""
) -> Failure:
    return Failure(check, state.cluster, flavor, node, name, expected, found, message)


def _slice(row: Allocation, held: Slice) -> str:
    return f"{held.device} of node {held.node}" if held.device else f"{held.count} {row.offering.resource}"
