"""The hold quota: a ResourceQuota of each live allocation, scoped to the PriorityClass that only its pods are given.

It bounds all pods of one allocation together, which no admission policy can: a policy sees one pod at a time. Class and
quota are named by the allocation's number in its namespace (``names.hold_slot``). A quota is never deleted, since a new
one binds only once the API server has it in its cache: without an allocation it is zero. Its annotation names the
allocation.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from allocations.cluster import names
from allocations.cluster.manifests import former_holds
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec, Snapshot
from quotas.catalog.node_shares import NodeShare


@dataclass(frozen=True)
class Hold:
    """What one allocation's pods may use: slices by device plugin resource (none by DRA), CPU, memory and pods."""

    allocation: str
    slices: Mapping[str, int] = field(default_factory=dict)
    node_share: NodeShare = field(default_factory=NodeShare)


def ref(request: ResolvedSpec) -> Ref:
    return Ref("ResourceQuota", request.namespace, names.hold_slot(request.number))


def hold(request: ResolvedSpec, counted: Mapping[str, int], snapshot: Snapshot) -> Hold:
    """What the allocation's own quota has: the slices ``counted``, less what pods of its former class still use."""
    former = former_holds.used_by(request, snapshot)
    slices = {resource: amount - former[resource] for resource, amount in counted.items()}
    return Hold(request.name, slices, request.node_share)


def pods(request: ResolvedSpec, snapshot: Snapshot) -> list[ObservedObject]:
    """The allocation's pods, its holders included: by its label, or by its class where they carry no label."""
    hold_class = names.hold_slot(request.number)
    unlabelled = [seen for seen in snapshot.of_kind("Pod", "") if seen.facts.get("class") == hold_class]
    return [*snapshot.of_kind("Pod", request.name), *unlabelled]


def build(
    namespace: str, number: int, labels: Mapping[str, str], hold: Hold | None, resources: Iterable[str]
) -> Manifest:
    """The quota of one number; ``resources`` are all that device plugins give, zero where the hold has none of it."""
    listed = {hold.allocation: dict(hold.slices)} if hold else {}
    slices = {**dict.fromkeys(resources, 0), **(hold.slices if hold else {})}
    manifest = _scoped(namespace, names.hold_slot(number), labels, slices)
    manifest["metadata"]["annotations"] = {names.SLICES: json.dumps(listed, sort_keys=True)}
    share = hold.node_share if hold else NodeShare()
    manifest["spec"]["hard"]["pods"] = str(share.pods)
    if share:
        manifest["spec"]["hard"] |= {f"requests.{name}": amount for name, amount in share.amounts.items()}
    return manifest


def build_former(
    namespace: str, flavor: str, labels: Mapping[str, str], used: Mapping[str, int], resources: Iterable[str]
) -> Manifest:
    """The quota that a flavor's allocations shared: what its pods still use (``former_holds``), and no more."""
    return _scoped(namespace, names.former_hold(flavor), labels, {**dict.fromkeys(resources, 0), **used})


def _scoped(namespace: str, name: str, labels: Mapping[str, str], slices: Mapping[str, int]) -> Manifest:
    """A quota of slices by resource, scoped to the PriorityClass of its own name."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "hard": {f"requests.{resource}": str(amount) for resource, amount in sorted(slices.items())},
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [name]}]},
        },
    }


def listing(request: ResolvedSpec, snapshot: Snapshot) -> ObservedObject | None:
    """The quota that lists the allocation: its own, or the one that its flavor's shared before."""
    found = (snapshot.get(one) for one in (ref(request), former_holds.quota_ref(request)))
    return next((seen for seen in found if seen is not None and _lists(seen, request)), None)


def is_listed(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Whether its own quota lists it."""
    seen = snapshot.get(ref(request))
    return seen is not None and _lists(seen, request)


def is_complete(request: ResolvedSpec, counted: Mapping[str, int], snapshot: Snapshot) -> bool:
    """Whether its own quota lists it with what it should have."""
    seen, slices = snapshot.get(ref(request)), hold(request, counted, snapshot).slices
    return seen is not None and seen.facts.get("slices", {}).get(request.name) == slices


def is_shown(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Whether its own quota has it, and the quota's status has followed: from then on it binds."""
    return is_listed(request, snapshot) and has_followed(snapshot.get(ref(request)))


def has_followed(seen: ObservedObject | None) -> bool:
    """Whether the quota's status shows what its spec says."""
    return seen is not None and not seen.deleting and bool(seen.facts.get("shown"))


def _lists(seen: ObservedObject, request: ResolvedSpec) -> bool:
    return request.name in seen.facts.get("slices", {})
