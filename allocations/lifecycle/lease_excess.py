"""Finds use beyond a lease: what pods and claims use without a reservation. Pure.

Use is the device plugin resources that bound pods request, and the devices allocated to claims, however many pods share
them. Reserved is what the lease, a Kueue Workload, has quota for. A pod that is terminating within its grace period is
no excess: Kueue releases the quota of a deleted or evicted Job before its pods have ended.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from allocations.cluster import names
from allocations.domain.objects import ObservedObject, Ref, Snapshot, is_on_node
from allocations.domain.observed_facts import claim_facts, pod_facts, workload_facts

DEVICES = "devices"
"""Used as the resource name for devices of claims."""


class HolderKind(StrEnum):
    ALLOCATION = "allocation"
    JOB = "job"
    POD = "pod"
    CLAIM = "claim"


@dataclass(frozen=True)
class Hold:
    """A live allocation.

    ``amounts`` is what its lease reserves, by device plugin resource or under DEVICES; None for a custom claim, which
    may use all devices allocated to it. ``claims`` are the names of its ResourceClaims; None if it has no row, and then
    all with its label. ``may_hold_without_lease``: its lease is gone and is being created again.
    """

    id: str
    name: str
    namespace: str
    number: int | None
    amounts: Mapping[str, int | None] = field(default_factory=dict)
    claims: tuple[str, ...] | None = None
    may_hold_without_lease: bool = False


@dataclass(frozen=True)
class Holder:
    """An allocation or a queued Job; or a pod or claim that belongs to neither."""

    kind: HolderKind
    namespace: str
    id: str
    name: str = field(compare=False)


@dataclass(frozen=True)
class Excess:
    """Use of a resource by a holder beyond what its lease reserves."""

    holder: Holder
    resource: str
    used: int
    reserved: int
    pods: tuple[Ref, ...] = ()
    """The bound pods that use it and are not terminating."""
    overdue_pods: tuple[Ref, ...] = ()
    """Further pods that are past their grace period and not gone."""
    claims: tuple[Ref, ...] = ()
    """The claims whose devices are counted."""

    @property
    def sentence(self) -> str:
        subject = {
            HolderKind.ALLOCATION: "Allocation {} uses",
            HolderKind.JOB: "The Job {} uses",
            HolderKind.POD: "The pod {} has neither an allocation nor a queued Job, and uses",
            HolderKind.CLAIM: "The ResourceClaim {} belongs to no allocation, and has",
        }[self.holder.kind].format(self.holder.name)
        overdue = {0: "", 1: "; 1 pod is past its grace period"}.get(
            len(self.overdue_pods), f"; {len(self.overdue_pods)} pods are past their grace period"
        )
        return f"{subject} {self.used} {self.resource} where {self.reserved} are reserved{overdue}."


def find(snapshot: Snapshot, holds: Iterable[Hold], now: datetime) -> list[Excess]:
    """Return each holder's use beyond its reservation, by resource.

    ``snapshot`` has the pods, the claims with devices and the Workloads of the namespaces in question.
    """
    by_name = {(hold.namespace, hold.name): hold for hold in holds}
    by_class = {(hold.namespace, names.hold_slot(hold.number)): hold for hold in by_name.values()}
    used: dict[Holder, Counter[str]] = defaultdict(Counter)
    pods: dict[Holder, list[ObservedObject]] = defaultdict(list)
    for pod in snapshot.of_kind("Pod"):
        if not _uses(pod, now):
            continue
        namespace, labelled = pod.ref.namespace, by_name.get((pod.ref.namespace, pod.allocation))
        holder = _holder(pod, labelled or by_class.get((namespace, pod_facts(pod).get("class", ""))))
        used[holder] += Counter(pod_facts(pod)["gpus"])
        pods[holder].append(pod)
    claims: dict[Holder, list[Ref]] = defaultdict(list)
    counted = {pod.uid for pod in snapshot.of_kind("Pod")}
    for claim in snapshot.of_kind("ResourceClaim"):
        facts = claim_facts(claim)
        devices = len(facts.get("devices", ()))
        if devices and facts.get("pod") not in counted:  # else it was made for a counted pod's request
            hold = by_name.get((claim.ref.namespace, claim.allocation))
            is_own = hold is not None and (hold.claims is None or claim.ref.name in hold.claims)
            holder = _holder(claim, hold if is_own else None)
            used[holder][DEVICES] += devices
            claims[holder].append(claim.ref)
    reserved = _reserved(snapshot, by_name.values())
    found = []
    for holder, amounts in used.items():
        for resource, amount in sorted(amounts.items()):
            amount_reserved = reserved.get(holder, {}).get(resource, 0)
            if amount_reserved is not None and amount > amount_reserved:
                users = [pod for pod in pods[holder] if resource in pod_facts(pod)["gpus"]]
                current = tuple(pod.ref for pod in users if not pod.deleting)
                overdue = tuple(pod.ref for pod in users if pod.deleting)
                of_claims = tuple(claims[holder]) if resource == DEVICES else ()
                found.append(Excess(holder, resource, amount, amount_reserved, current, overdue, of_claims))
    return found


def _uses(pod: ObservedObject, now: datetime) -> bool:
    """Return whether the pod uses GPUs: it is bound, unfinished, and not terminating within its grace period."""
    facts = pod_facts(pod)
    if not is_on_node(facts) or not facts.get("gpus"):
        return False
    return not pod.deleting or ("ends_by" in facts and datetime.fromisoformat(facts["ends_by"]) < now)


def _holder(observed: ObservedObject, hold: Hold | None) -> Holder:
    namespace, facts = observed.ref.namespace, pod_facts(observed)  # the facts of a claim name no Job
    job = facts.get("job")
    if hold is not None:
        return Holder(HolderKind.ALLOCATION, namespace, hold.id, hold.name)
    if job:
        return Holder(HolderKind.JOB, namespace, job, facts.get("job_name", job))
    kind = HolderKind.CLAIM if observed.ref.kind == "ResourceClaim" else HolderKind.POD
    return Holder(kind, namespace, observed.uid, observed.ref.name)


def reserving(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Return namespace and name of the allocations whose lease has quota reserved."""
    leases = (
        one for one in snapshot.of_kind("Workload") if one.allocation and workload_facts(one).get("cluster_queue")
    )
    return {(lease.ref.namespace, lease.allocation) for lease in leases}


def _reserved(snapshot: Snapshot, holds: Iterable[Hold]) -> dict[Holder, Mapping[str, int | None]]:
    leases = reserving(snapshot)
    found: dict[Holder, Mapping[str, int | None]] = {
        Holder(HolderKind.ALLOCATION, hold.namespace, hold.id, hold.name): hold.amounts
        for hold in holds
        if hold.may_hold_without_lease or (hold.namespace, hold.name) in leases
    }
    for workload in snapshot.of_kind("Workload", ""):
        facts = workload_facts(workload)
        job = facts.get("job")
        if job and facts.get("cluster_queue"):
            holder = Holder(HolderKind.JOB, workload.ref.namespace, job["uid"], job["name"])
            found[holder] = sum(map(Counter, facts["usage"].values()), Counter())
    return found
