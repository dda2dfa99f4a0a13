"""Records the use of GPUs by pods and claims without an allocation, in the transaction in which the watcher sees it.

Pods of queued Jobs are among them: whether the ledger charges one is known later than that it runs.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime

from allocations.cluster.kinds import Observation
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import claim_facts, pod_facts
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.metering import job_usage
from allocations.reconcile.mirror_change import Change
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.metering import foreign
from quotas.metering.foreign import Start, Use
from quotas.metering.models import ForeignUse
from quotas.metering.units import GPU, RESOURCE

MAX_COUNT = 2**63 - 1
"""The largest number that a column has. A pod may request any."""
SHOW_USE = frozenset({"Pod", "ResourceClaim"})


def record(cluster: str, changes: Iterable[Change], allocations: Container[tuple[str, str]]) -> None:
    """Record what the changes say, in their order, that pods and claims began or ceased to use.

    Two queries for all that began, one for each change with which a use ended, none for anything else. ``allocations``
    are namespace and name of those that there are or were: a label alone makes no allocation.
    """
    starts: dict[tuple[str, str], Start] = {}
    for change in changes:
        new, old = change.new, change.old
        if new.ref.kind not in SHOW_USE:
            continue
        before = _uses(cluster, old, allocations) if old is not None else {}
        after = _uses(cluster, new, allocations) if not new.gone else {}
        if old is not None and (ended := [slot for slot in before if before[slot] != after.get(slot)]):
            if any((old.uid, slot) in starts for slot in ended):
                foreign.begin(cluster, starts.values())
                starts.clear()
            foreign.end(cluster, old.uid, ended, new.at, new.resource_version, estimated=not new.live)
        for slot, use in after.items():
            if use != before.get(slot):
                starts[use.uid, slot] = Start(use, new.at, new.resource_version, estimated=not new.live)
    foreign.begin(cluster, starts.values())


def record_listed(cluster: str, kind: str, at: datetime) -> None:
    """Record the use by all pods or claims once they were listed: what no change has told is missing, such as what was
    there before such use was recorded.
    """
    if kind not in SHOW_USE:
        return
    objects = MirrorObject.objects.filter(cluster=cluster, kind=kind)
    used = objects.exclude(facts__gpus={}) if kind == "Pod" else objects.exclude(facts__devices=[])
    rows = list(used.only("kind", "namespace", "name", "uid", "allocation", "facts"))
    named = Allocation.objects.filter(project__cluster=cluster, name__in={row.allocation for row in rows} - {""})
    allocations = set(named.values_list("project__namespace", "name"))
    begun = {(row.uid, slot): use for row in rows for slot, use in _uses(cluster, row, allocations).items()}
    known = set(ForeignUse.objects.filter(cluster=cluster, consumer_kind=kind, end=None).values_list("uid", "slot"))
    for uid, slot in known - begun.keys():
        foreign.end(cluster, uid, [slot], at, 0, estimated=True)
    missing = [use for key, use in begun.items() if key not in known]
    foreign.begin(cluster, [Start(use, at, 0, estimated=True) for use in missing])


def _uses(
    cluster: str, observed: Observation | MirrorObject, allocations: Container[tuple[str, str]]
) -> Mapping[str, Use]:
    """Return what the object uses of GPUs without an allocation, by slot."""
    if observed.allocation and (_ref(observed).namespace, observed.allocation) in allocations:
        return {}
    is_pod = _ref(observed).kind == "Pod"
    found = _of_pod(cluster, observed) if is_pod else _of_claim(cluster, observed)
    return {use.slot: use for use in found}


def _of_pod(cluster: str, pod: Observation | MirrorObject) -> Iterator[Use]:
    """Yield the uses of a pod; none if its PriorityClass is a hold's, whose quota bounds and charges them."""
    facts = pod_facts(pod)
    if not facts or not job_usage.is_bound(facts) or facts.get("class"):
        return
    for resource, count in facts["gpus"].items():
        slot = f"{job_usage.pod_slot_prefix(cluster)}{pod.uid}/{resource}"
        yield _use(pod, slot, facts["node"], RESOURCE, resource, count, facts.get("owner_kind", ""))


def _of_claim(cluster: str, claim: Observation | MirrorObject) -> Iterator[Use]:
    facts = claim_facts(claim)
    for device in facts["devices"] if facts else ():
        if device["driver"] == DRA_DRIVER:
            count = int(device.get("consumed", {}).get("shares", 1))
            slot = job_usage.device_slot(cluster, device)
            yield _use(claim, slot, device["pool"], GPU, device["device"], count, facts.get("owner_kind", ""))


def _use(
    observed: Observation | MirrorObject, slot: str, node: str, kind: str, name: str, count: int, owner_kind: str
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


def _ref(observed: Observation | MirrorObject) -> Ref:
    if isinstance(observed, Observation):
        return observed.ref
    return Ref(observed.kind, observed.namespace, observed.name)
