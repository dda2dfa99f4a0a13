"""Records the use of GPUs that no allocation covers, in the transaction in which the watcher sees it: by pods and
claims without an allocation, and by those of an allocation beyond what its lease holds.

Pods of queued Jobs are among them: whether the ledger charges one is known later than that it runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.kinds import Observation
from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed_facts import claim_facts, pod_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.metering import job_usage
from allocations.reconcile.recorder import Recorder, Seen
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.metering import foreign
from quotas.metering.foreign import Start, Use
from quotas.metering.models import ForeignUse
from quotas.metering.units import GPU, RESOURCE

MAX_COUNT = 2**63 - 1
"""The largest number that a column has. A pod may request any."""
SHOW_USE = frozenset({"Pod", "ResourceClaim"})
Allocations = Mapping[tuple[str, str], Allocation]
"""The allocations that there are or were, by namespace and name: a label alone makes no allocation."""
Uses = dict[tuple[str, str], Use]
"""Uses by the uid of the pod or claim, and slot."""


@dataclass(frozen=True)
class UseChange:
    """What an observation says that was used before it and is used after it, as far as it concerns that."""

    seen: Observation
    before: Uses
    after: Uses


def _change_of(cluster: str, seen: Seen, allocations: Allocations) -> UseChange:
    """Return what a change says of uses: of its own object, and of the pods of the allocations that it concerns."""
    new, old, snapshots = seen.change.new, seen.change.old, seen.snapshots
    before, after = Uses(), Uses()
    if new.ref.kind in SHOW_USE:
        before = _uses(cluster, old, allocations) if old is not None else before
        after = _uses(cluster, new, allocations) if not new.gone else after
    if snapshots is not None and new.ref.kind != "ResourceClaim":
        before = before | _of_allocations(cluster, seen.concerned, snapshots.before)
        after = after | _of_allocations(cluster, seen.concerned, snapshots.after)
    return UseChange(new, before, after)


def _batch(batch: BatchState, changes: Sequence[Seen]) -> None:
    """Record the uses that began or ceased with the changes, in their order.

    Two queries for all that began, one for each object whose use ended with a change, none for anything else.
    """
    cluster = batch.cluster
    starts: dict[tuple[str, str], Start] = {}
    for change in (_change_of(cluster, one, batch.holders) for one in changes):
        seen, before, after = change.seen, change.before, change.after
        ended: dict[str, list[str]] = defaultdict(list)
        for uid, slot in (key for key in before if before[key] != after.get(key)):
            ended[uid].append(slot)
        for uid, slots in ended.items():
            if any((uid, slot) in starts for slot in slots):
                foreign.begin(cluster, starts.values())
                starts.clear()
            foreign.end(cluster, uid, slots, seen.at, seen.resource_version, estimated=not seen.live)
        for key, use in after.items():
            if use != before.get(key):
                starts[key] = Start(use, seen.at, seen.resource_version, estimated=not seen.live)
    foreign.begin(cluster, starts.values())


def _listed(cluster: str, kind: str, at: datetime) -> None:
    """Record the use by all pods or claims once they were listed: what no change has told is missing, such as what was
    there before such use was recorded.
    """
    if kind not in SHOW_USE:
        return
    objects = MirrorObject.objects.filter(cluster=cluster, kind=kind)
    used = objects.exclude(facts__gpus={}) if kind == "Pod" else objects.exclude(facts__devices=[])
    rows = list(used.only("kind", "namespace", "name", "uid", "allocation", "facts"))
    allocations = _allocations(cluster, {row.allocation for row in rows} - {""})
    begun = Uses()
    for row in rows:
        begun |= _uses(cluster, row, allocations)
    begun |= _of_holds(cluster, rows, allocations) if kind == "Pod" else {}
    known = set(ForeignUse.objects.filter(cluster=cluster, consumer_kind=kind, end=None).values_list("uid", "slot"))
    for uid, slot in known - begun.keys():
        foreign.end(cluster, uid, [slot], at, 0, estimated=True)
    missing = [use for key, use in begun.items() if key not in known]
    foreign.begin(cluster, [Start(use, at, 0, estimated=True) for use in missing])


def end_of_recovered(row: Allocation, snapshot: Snapshot) -> None:
    """End at its start what the allocation's own objects used while its row was lost: the allocation is charged for it.
    ``snapshot`` is that of ``mirror.of_allocations``. One query if there is nothing to end.
    """
    cluster, allocations = row.project.cluster_id, {(row.project.namespace, row.name): row}
    own = [one for kind in SHOW_USE for one in snapshot.of_kind(kind)]
    used = _of_allocations(cluster, [row], snapshot)
    for one in own:
        used |= _uses(cluster, one, allocations)
    for use in ForeignUse.objects.filter(cluster=cluster, uid__in=[one.uid for one in own], end=None):
        if (use.uid, use.slot) not in used:
            foreign.end(cluster, use.uid, [use.slot], use.start, 0, estimated=True)


def _allocations(cluster: str, labels: Iterable[str]) -> dict[tuple[str, str], Allocation]:
    """Return the allocations of these names: of each name the live one, else the one that ended last."""
    rows = spec_of_row.rows().filter(project__cluster=cluster, name__in=labels)
    return {(row.project.namespace, row.name): row for row in spec_of_row.of_names(rows)}


def _of_holds(cluster: str, pods: Iterable[MirrorObject], labelled: Allocations) -> Uses:
    """Return what pods with an allocation's label or the class of a hold use beyond the lease; no query without one."""
    of_class = [pod for pod in pods if not pod.allocation and pod_facts(pod).get("class")]
    by_class = {(pod.namespace, pod_facts(pod)["class"]) for pod in of_class}
    if not (labelled or by_class):
        return {}
    live = Q(project__cluster=cluster, project__namespace__in={namespace for namespace, _ in by_class}, ended_at=None)
    numbered = spec_of_row.rows().filter(live, number__isnull=False) if by_class else ()
    rows = {row.pk: row for row in (*labelled.values(), *numbered)}.values()
    snapshots = mirror.of_holds(cluster)
    found = Uses()
    for row in rows:
        found |= _of_allocations(cluster, [row], snapshots.get(row.project.namespace, Snapshot()))
    classes = {(row.project.namespace, names.hold_slot(row.number)) for row in rows if row.number is not None}
    for pod in of_class:
        if (pod.namespace, pod_facts(pod)["class"]) not in classes:
            found |= _by_key(_of_pod(cluster, pod))
    return found


def _of_allocations(cluster: str, rows: Iterable[Allocation], snapshot: Snapshot) -> Uses:
    """Return what the pods of the allocations use beyond their leases: resources of which a lease holds nothing.

    What they use of a resource beyond the count that is held is charged in intervals of their own, and so is no
    foreign use.
    """
    found = Uses()
    if not any(pod_facts(pod).get("gpus") for pod in snapshot.of_kind("Pod")):
        return found
    for row in rows:
        spec = spec_of_row.resolved_spec(row)
        pods = [pod for pod in hold_quota.pods(spec, snapshot) if pod_facts(pod).get("gpus")]
        covered = spec.resource if pods and registry.backend_of(spec).occupied(spec, snapshot) else ""
        for pod in pods:
            found |= _by_key(use for use in _of_pod(cluster, pod) if use.name != covered)
    return found


def _uses(cluster: str, observed: Observation | MirrorObject | ObservedObject, allocations: Allocations) -> Uses:
    """Return what the object itself uses without an allocation; of a live one, all claims are its own but those that
    have its label alone.
    """
    ref, row = _ref(observed), allocations.get((_ref(observed).namespace, observed.allocation))
    if ref.kind == "Pod":
        is_bounded = row is not None or bool(pod_facts(observed).get("class"))
        return {} if is_bounded else _by_key(_of_pod(cluster, observed))
    if row is not None and row.ended_at is None and ref in _own_claims(row):
        return {}
    return _by_key(_of_claim(cluster, observed))


def _own_claims(row: Allocation) -> Sequence[Ref]:
    spec = spec_of_row.resolved_spec(row)
    return registry.backend_of(spec).claims(spec)


def _by_key(uses: Iterable[Use]) -> Uses:
    return {(use.uid, use.slot): use for use in uses}


def _of_pod(cluster: str, pod: Observation | MirrorObject | ObservedObject) -> Iterator[Use]:
    facts = pod_facts(pod)
    if not facts or not job_usage.is_bound(facts):
        return
    for resource, count in facts["gpus"].items():
        slot = f"{job_usage.pod_slot_prefix(cluster)}{pod.uid}/{resource}"
        yield _use(pod, slot, facts["node"], RESOURCE, resource, count, facts.get("owner_kind", ""))


def _of_claim(cluster: str, claim: Observation | MirrorObject | ObservedObject) -> Iterator[Use]:
    facts = claim_facts(claim)
    for device in facts["devices"] if facts else ():
        if device["driver"] == DRA_DRIVER:
            count = int(device.get("consumed", {}).get("shares", 1))
            slot = job_usage.device_slot(cluster, device)
            yield _use(claim, slot, device["pool"], GPU, device["device"], count, facts.get("owner_kind", ""))


def _use(
    observed: Observation | MirrorObject | ObservedObject,
    slot: str,
    node: str,
    kind: str,
    name: str,
    count: int,
    owner_kind: str,
) -> Use:
    ref = _ref(observed)
    return Use(
        slot=slot,
        node=node,
        kind=kind,
        name=name,
        count=min(max(count, 0), MAX_COUNT),
        consumer_kind=ref.kind,
        consumer=ref.name,
        uid=observed.uid,
        namespace=ref.namespace,
        owner_kind=owner_kind,
    )


def _ref(observed: Observation | MirrorObject | ObservedObject) -> Ref:
    if isinstance(observed, MirrorObject):
        return Ref(observed.kind, observed.namespace, observed.name)
    return observed.ref


RECORDER = Recorder(batch=_batch, listed=_listed)
