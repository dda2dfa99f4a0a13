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
from allocations.cluster.manifests import former_holds
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed_facts import quota_facts
from quotas.catalog.node_shares import NodeShare


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


def hold(spec: ResolvedSpec, amounts: Mapping[str, int], snapshot: Snapshot) -> Hold:
    """Return the amounts of the allocation's own quota: ``amounts`` less what pods of its former class still use."""
    former = former_holds.used_by(spec, snapshot)
    slices = {resource: amount - former[resource] for resource, amount in amounts.items()}
    return Hold(spec.name, slices, spec.node_share)


def pods(spec: ResolvedSpec, snapshot: Snapshot) -> list[ObservedObject]:
    """Return the allocation's pods, including holders: those with its label, and unlabelled ones of its class."""
    of_class = snapshot.pods_by_class.get(names.hold_slot(spec.number), ())
    return [*snapshot.of_kind("Pod", spec.name), *(pod for pod in of_class if not pod.allocation)]


def build(
    namespace: str, number: int, labels: Mapping[str, str], hold: Hold | None, resources: Iterable[str]
) -> Manifest:
    """Return the hold quota of a number in a namespace.

    ``resources`` are those of all device plugins; a resource that the hold does not have is limited to zero.
    """
    slices_by_allocation = {hold.allocation: dict(hold.slices)} if hold else {}
    slices = {**dict.fromkeys(resources, 0), **(hold.slices if hold else {})}
    manifest = _scoped(namespace, names.hold_slot(number), labels, slices)
    manifest["metadata"]["annotations"] = {names.SLICES: json.dumps(slices_by_allocation, sort_keys=True)}
    share = hold.node_share if hold else NodeShare()
    manifest["spec"]["hard"]["pods"] = str(share.pods)
    if share:
        manifest["spec"]["hard"] |= {f"requests.{name}": amount for name, amount in share.amounts.items()}
    return manifest


def build_former(
    namespace: str, flavor: str, labels: Mapping[str, str], used: Mapping[str, int], resources: Iterable[str]
) -> Manifest:
    """Return the former quota of a flavor, limited to what its pods still use (``former_holds``)."""
    return _scoped(namespace, names.former_hold(flavor), labels, {**dict.fromkeys(resources, 0), **used})


def _scoped(namespace: str, name: str, labels: Mapping[str, str], slices: Mapping[str, int]) -> Manifest:
    """Return a quota of slices by resource, scoped to the PriorityClass of the same name."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "hard": {f"requests.{resource}": str(amount) for resource, amount in sorted(slices.items())},
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [name]}]},
        },
    }


def listing(spec: ResolvedSpec, snapshot: Snapshot) -> ObservedObject | None:
    """Return the quota that lists the allocation: its own, or the former one of its flavor; None if none does."""
    quotas = (snapshot.get(quota) for quota in (ref(spec), former_holds.quota_ref(spec)))
    return next((quota for quota in quotas if quota is not None and _lists(quota, spec)), None)


def is_listed(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the allocation's own quota lists it."""
    quota = snapshot.get(ref(spec))
    return quota is not None and _lists(quota, spec)


def is_complete(spec: ResolvedSpec, amounts: Mapping[str, int], snapshot: Snapshot) -> bool:
    """Return whether the allocation's own quota lists it with the amounts that it should have."""
    quota, slices = snapshot.get(ref(spec)), hold(spec, amounts, snapshot).slices
    return quota is not None and quota_facts(quota).get("slices", {}).get(spec.name) == slices


def is_shown(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the allocation's own quota lists it and its status is up to date, so that it is enforced."""
    return is_listed(spec, snapshot) and is_enforced(snapshot.get(ref(spec)))


def is_enforced(quota: ObservedObject | None) -> bool:
    """Return whether the quota's status shows its spec, which means that the API server enforces it."""
    return quota is not None and not quota.deleting and bool(quota_facts(quota).get("shown"))


def _lists(quota: ObservedObject, spec: ResolvedSpec) -> bool:
    return spec.name in quota_facts(quota).get("slices", {})
