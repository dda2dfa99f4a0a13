"""Computes the use of each node: pool units of pods and claims, and the CPU, memory and pods requested. Pure.

Pods count by their device plugin resources on the node they are bound to, claims of NVIDIA's driver by their allocated
devices. Use of devices that are not offered, on nodes that are not ready, or on unhealthy devices is ignored.
``flavors`` says of which flavor a holder's slices are: an allocation by namespace and name, and by its uid a pod or
claim of a tenant's queued Job that the ledger charges. What a holder uses of another flavor is foreign there, such as
after the product label of its node has changed: its lease counts where it was admitted, and not where its GPU is
offered now.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.domain.objects import ObservedObject, Snapshot, is_on_node
from allocations.domain.observed_facts import claim_facts, pod_facts
from quotas.catalog import blocked_capacity, dra_resources, layouts, storable
from quotas.catalog.blocked_capacity import BlockedCapacity, NodeUse, Supplied
from quotas.catalog.geometry import COMPUTE_SLICES
from quotas.catalog.layouts import parent_gpu
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.catalog.types import Discovered, FoundFlavor, FoundNode, NodeUsage


@dataclass(frozen=True)
class UnitsUsed:
    """Units of a pool that a pod or a claim uses on a node; of a partition, its fraction of ``gpu``."""

    consumer: ObservedObject
    node: str
    pool: str
    units: Fraction
    gpu: str = ""


def of_nodes(
    snapshot: Snapshot,
    found: Discovered,
    flavors: Mapping[str, str],
    per_gpu: Mapping[str, NodeShare],
) -> dict[str, NodeUsage]:
    """Return the use of each node that is offered and ready; ``per_gpu`` as for ``blocked_capacities``."""
    foreign = foreign_use(snapshot, found, flavors)
    blocked = blocked_capacities(snapshot, found, flavors, per_gpu)
    return {
        node: NodeUsage(
            storable.used_units(foreign.get(node, {})), storable.used_units(one.blocked_units), one.blocked, one.problem
        )
        for node, one in blocked.items()
    }


def totals(of_each_node: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums by pool key."""
    return dict(sum(map(Counter[str], of_each_node), Counter[str]()))


def foreign_use(snapshot: Snapshot, found: Discovered, flavors: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the units that pods and claims use without an allocation of the pool's flavor, by node and pool key.

    A partition of a GPU counts as the whole GPU, since the GPU cannot be allocated whole any more.
    """
    foreign = [one for one in units_used(snapshot, found) if not _is_own(one, flavors)]
    use: dict[str, Counter[str]] = defaultdict(Counter)
    for one in foreign:
        use[one.node][one.pool] += 0 if one.gpu else int(one.units)
    for pool, node, _gpu in {(one.pool, one.node, one.gpu) for one in foreign if one.gpu}:
        use[node][pool] += 1
    return {node: dict(units) for node, units in use.items()}


def _is_own(one: UnitsUsed, flavors: Mapping[str, str]) -> bool:
    """Return whether a lease, or the quota of a Job, counts these units in their pool."""
    consumer = one.consumer
    flavor = one.pool.partition("/")[0]
    if consumer.allocation:
        return flavors.get(f"{consumer.ref.namespace}/{consumer.allocation}", flavor) == flavor
    return flavors.get(consumer.uid) == flavor


def units_used(snapshot: Snapshot, found: Discovered) -> Iterator[UnitsUsed]:
    """Yield the pool units that bound pods and claims use, whoever created them."""
    flavors = {flavor.name: flavor for flavor in found.flavors}
    flavor_of = {node.name: flavors[node.flavor] for node in found.nodes if node.flavor and node.ready}
    pools = {(pool.flavor, resource): pool.key for pool in found.pools for resource in pool.resources}
    for pod in bound(snapshot):
        facts = pod_facts(pod)
        flavor = flavor_of.get(facts["node"])
        if flavor is None or flavor.identity.path in NAMING_PATHS:  # counted by its claims
            continue
        for resource, amount in facts["gpus"].items():
            if key := pools.get((flavor.name, resource)):
                yield UnitsUsed(pod, facts["node"], key, Fraction(amount))
    yield from _of_claims(snapshot, found, flavor_of, pools)


def bound(snapshot: Snapshot) -> list[ObservedObject]:
    """Return the pods that use resources of a node."""
    return [pod for pod in snapshot.of_kind("Pod") if is_on_node(pod_facts(pod))]


def _of_claims(
    snapshot: Snapshot, found: Discovered, flavor_of: Mapping[str, FoundFlavor], pools: Mapping[tuple[str, str], str]
) -> Iterator[UnitsUsed]:
    profiles = {(d.node, d.name): str(d.attributes["profile"]) for d in found.devices if "profile" in d.attributes}
    unhealthy = {(d.node, d.name) for d in found.devices if not d.healthy}
    keys = {pool.key for pool in found.pools}
    for claim in snapshot.of_kind("ResourceClaim"):
        for device in claim_facts(claim)["devices"]:
            node, name = device["pool"], device["device"]
            flavor, gpu = flavor_of.get(node), parent_gpu(name)
            if flavor is None or device["driver"] != DRA_DRIVER or {(node, name), (node, gpu)} & unhealthy:
                continue
            if key := pools.get((flavor.name, COMPUTE_SLICES)):
                yield UnitsUsed(claim, node, key, _gpu_fraction(flavor.geometry, name), gpu)
            elif key := pools.get((flavor.name, dra_resources.GPU_SHARES)):
                yield UnitsUsed(claim, node, key, Fraction(device.get("consumed", {}).get("shares", 1)))
            elif (key := f"{flavor.name}/{dra_resources.pool_of(profiles.get((node, name), ''))}") in keys:
                yield UnitsUsed(claim, node, key, Fraction(1))


def _gpu_fraction(geometry: Geometry | None, device: str) -> Fraction:
    """Return the fraction of its GPU that a device is; 1 if it is no known partition."""
    place = layouts.known_placement(geometry, device) if geometry else None
    return Fraction(place.size, geometry.memory) if geometry and place else Fraction(1)


def blocked_capacities(
    snapshot: Snapshot,
    found: Discovered,
    flavors: Mapping[str, str],
    per_gpu: Mapping[str, NodeShare],
) -> dict[str, BlockedCapacity]:
    """Return by node how many of its pool units lack CPU, memory or pods.

    Only nodes that are offered. ``per_gpu`` is the share of CPU, memory and pods of one GPU, by flavor.
    """
    offered = {node.name: node for node in found.nodes if node.flavor and node.ready}
    parts = {pool.key: pool.memory_part for pool in found.pools}
    supplied = {name: _supplied(node, parts) for name, node in offered.items()}
    shares = {name: per_gpu[node.flavor] for name, node in offered.items()}
    use = _uses(snapshot, found, flavors, shares, parts)
    return {
        name: blocked_capacity.of_node(name, supplied[name], use.get(name, NodeUse()), per_gpu[node.flavor])
        for name, node in offered.items()
    }


def _supplied(node: FoundNode, parts: Mapping[str, Fraction]) -> Supplied:
    units = {f"{node.flavor}/{pool}": count for pool, count in node.units.items()}
    return Supplied(node.gives, units, {pool: parts[pool] for pool in units})


def _uses(
    snapshot: Snapshot,
    found: Discovered,
    flavors: Mapping[str, str],
    per_gpu: Mapping[str, NodeShare],
    parts: Mapping[str, Fraction],
) -> dict[str, NodeUse]:
    """Return the use of each node of ``per_gpu``."""
    served = {claim_facts(claim).get("pod", "") for claim in snapshot.of_kind("ResourceClaim") if claim.uid in flavors}
    units: dict[tuple[str, bool], dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    gpus: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for one in units_used(snapshot, found):
        holder = _holder(one.consumer, flavors, served) if _is_own(one, flavors) else ""
        units[one.node, bool(holder)][one.pool] += one.units
        if holder:
            gpus[one.node, holder] += one.units * parts[one.pool]
    foreign, requested = _pod_requests(snapshot, flavors, served)
    excess: dict[str, Counter[str]] = defaultdict(Counter)
    for (node, holder), amounts in requested.items():
        if node in per_gpu:
            excess[node] += amounts - Counter(vars(per_gpu[node].part(gpus[node, holder])))
    return {
        node: NodeUse(NodeShare(**foreign[node]), NodeShare(**excess[node]), units[node, False], units[node, True])
        for node in per_gpu
    }


def _pod_requests(
    snapshot: Snapshot, flavors: Mapping[str, str], served: Collection[str]
) -> tuple[dict[str, Counter[str]], dict[tuple[str, str], Counter[str]]]:
    """Return what pods request of each node: those that belong to no holder in sum, and by holder.

    A holder pod of the portal takes the pod slot of its allocation's share; its CPU and memory count as foreign.
    """
    foreign: dict[str, Counter[str]] = defaultdict(Counter)
    by_holder: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pod in bound(snapshot):
        facts, holder = pod_facts(pod), _holder(pod, flavors, served)
        node = facts["node"]
        amounts = Counter(cpu_millicores=facts.get("cpu_millicores", 0), memory_mib=facts.get("memory_mib", 0))
        of_holder = Counter() if facts.get("holder") else amounts
        if holder:
            by_holder[node, holder] += of_holder + Counter(pods=1)
            foreign[node] += amounts - of_holder
        else:
            foreign[node] += amounts + Counter(pods=1)
    return foreign, by_holder


def _holder(observed: ObservedObject, flavors: Mapping[str, str], served: Collection[str]) -> str:
    """Return the allocation, or the pod of a queued Job, that the pod or the claim belongs to; "" for none."""
    if observed.allocation:
        return f"{observed.ref.namespace}/{observed.allocation}"
    if observed.uid in served or (observed.uid in flavors and observed.ref.kind == "Pod"):
        return observed.uid
    return claim_facts(observed).get("pod", "") if observed.uid in flavors else ""
