"""Builds the hold quota: a ResourceQuota for each live allocation, scoped to the PriorityClass of its pods.

It limits all pods of an allocation together, which no admission policy can, since a policy sees one pod at a time. The
class and the quota are named by the allocation's number in its namespace (``names.hold_slot``). A quota is never
deleted, since a new one is enforced only once the API server has it in its cache: without an allocation it is zero. Its
annotation names the allocation.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from allocations.cluster import names
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed_facts import quota_facts
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.nvidia import MIG_CLASS, WHOLE_GPU_CLASS

IMPLICIT_REQUESTS = tuple(f"deviceclass.resource.kubernetes.io/{name}" for name in (WHOLE_GPU_CLASS, MIG_CLASS))


@dataclass(frozen=True)
class Hold:
    """The amounts that one allocation's pods may use: slices by device plugin resource (none with DRA), and the CPU,
    memory and pods of ``node_share``."""

    allocation: str
    slices: Mapping[str, int] = field(default_factory=dict)
    node_share: NodeShare = field(default_factory=NodeShare)


def ref(spec: ResolvedSpec) -> Ref:
    """Return the allocation's own hold quota."""
    return Ref("ResourceQuota", spec.namespace, names.hold_slot(spec.number))


def hold(spec: ResolvedSpec, amounts: Mapping[str, int]) -> Hold:
    """Return the amounts of the allocation's quota: ``amounts`` of slices, and what goes with them on a node."""
    return Hold(spec.name, amounts, spec.node_share)


def pods(spec: ResolvedSpec, snapshot: Snapshot) -> list[ObservedObject]:
    """Return the allocation's pods, including holders: those with its label, and unlabelled ones of its class."""
    of_class = snapshot.pods_by_class.get(names.hold_slot(spec.number), ())
    return [*snapshot.of_kind("Pod", spec.name), *(pod for pod in of_class if not pod.allocation)]


def build(
    namespace: str, number: int, labels: Mapping[str, str], hold: Hold | None, resources: Iterable[str]
) -> Manifest:
    """Return the hold quota of a number in a namespace.

    ``resources`` are those of all device plugins; a resource that the hold does not have is limited to zero, as are
    implicit requests of NVIDIA's DeviceClasses: slices by DRA are had by the allocation's claim alone.
    """
    slices_by_allocation = {hold.allocation: dict(hold.slices)} if hold else {}
    slices = {**dict.fromkeys((*resources, *IMPLICIT_REQUESTS), 0), **(hold.slices if hold else {})}
    name, share = names.hold_slot(number), hold.node_share if hold else NodeShare()
    hard = {f"requests.{resource}": str(amount) for resource, amount in sorted(slices.items())}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": {names.SLICES: json.dumps(slices_by_allocation, sort_keys=True)},
        },
        "spec": {
            "hard": {**hard, "pods": str(share.pods)}
            | ({f"requests.{resource}": amount for resource, amount in share.amounts.items()} if share else {}),
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [name]}]},
        },
    }


def listing(spec: ResolvedSpec, snapshot: Snapshot) -> ObservedObject | None:
    """Return the allocation's quota if it lists the allocation, else None."""
    quota = snapshot.get(ref(spec))
    return quota if quota is not None and _lists(quota, spec) else None


def is_listed(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the allocation's quota lists it."""
    return listing(spec, snapshot) is not None


def is_complete(spec: ResolvedSpec, amounts: Mapping[str, int], snapshot: Snapshot) -> bool:
    """Return whether the allocation's quota lists it with the amounts that it should have."""
    quota = snapshot.get(ref(spec))
    return quota is not None and quota_facts(quota).get("slices", {}).get(spec.name) == amounts


def is_shown(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the allocation's own quota lists it and its status is up to date, so that it is enforced."""
    return is_listed(spec, snapshot) and is_enforced(snapshot.get(ref(spec)))


def is_enforced(quota: ObservedObject | None) -> bool:
    """Return whether the quota's status shows its spec, which means that the API server enforces it."""
    return quota is not None and not quota.deleting and bool(quota_facts(quota).get("shown"))


def _lists(quota: ObservedObject, spec: ResolvedSpec) -> bool:
    return spec.name in quota_facts(quota).get("slices", {})
