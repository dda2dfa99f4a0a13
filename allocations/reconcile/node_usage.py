"""Computes the use of each node: units of pools of pods and claims, and CPU, memory and pods requested. Pure.

Pods count by their device plugin resources on the node they are bound to; claims of NVIDIA's driver by their allocated
devices. Use of what is not offered, on nodes that take no pods or on unhealthy devices, reduces nothing. ``metered``
are the uids of pods and claims of tenants' queued Jobs whose GPUs the ledger has.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from allocations.capacity.cards import card_of
from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.domain.objects import ObservedObject, Snapshot, is_on_node
from quotas.catalog import dra_resources, layouts, node_room
from quotas.catalog.geometry import COMPUTE_SLICES
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.node_room import NodeUse, Room, Supplied
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.catalog.types import Discovered, FoundFlavor, FoundNode


@dataclass(frozen=True)
class UnitsUsed:
    """Units of a pool that a pod or a claim has on a node: of one that is cut on demand its part of ``card``."""

    by: ObservedObject
    node: str
    pool: str
    units: Fraction
    card: str = ""


def foreign_use(snapshot: Snapshot, found: Discovered, metered: Collection[str]) -> dict[str, int]:
    """Units by pool that pods and claims use without an allocation: {pool key: units}. A part that was cut on demand
    uses its whole card, since nothing whole is left of that."""
    foreign = [one for one in units_used(snapshot, found) if not one.by.allocation and one.by.uid not in metered]
    use: Counter[str] = Counter()
    for one in foreign:
        use[one.pool] += 0 if one.card else int(one.units)
    for pool, _node, _card in {(one.pool, one.node, one.card) for one in foreign if one.card}:
        use[pool] += 1
    return dict(use)


def units_used(snapshot: Snapshot, found: Discovered) -> Iterator[UnitsUsed]:
    """What all bound pods and all claims have of the pools, whoever made them."""
    flavors = {flavor.name: flavor for flavor in found.flavors}
    flavor_of = {node.name: flavors[node.flavor] for node in found.nodes if node.flavor and node.ready}
    pools = {(pool.flavor, resource): pool.key for pool in found.pools for resource in pool.resources}
    for pod in bound(snapshot):
        flavor = flavor_of.get(pod.facts["node"])
        if flavor is None or flavor.identity.path in NAMING_PATHS:  # a claim says which it has
            continue
        for resource, amount in pod.facts["gpus"].items():
            if key := pools.get((flavor.name, resource)):
                yield UnitsUsed(pod, pod.facts["node"], key, Fraction(amount))
    yield from _of_claims(snapshot, found, flavor_of, pools)


def bound(snapshot: Snapshot) -> list[ObservedObject]:
    """Pods that take something of a node."""
    return [pod for pod in snapshot.of_kind("Pod") if is_on_node(pod.facts)]


def _of_claims(
    snapshot: Snapshot, found: Discovered, flavor_of: Mapping[str, FoundFlavor], pools: Mapping[tuple[str, str], str]
) -> Iterator[UnitsUsed]:
    profiles = {(d.node, d.name): str(d.attributes["profile"]) for d in found.devices if "profile" in d.attributes}
    unhealthy = {(d.node, d.name) for d in found.devices if not d.healthy}
    keys = {pool.key for pool in found.pools}
    for claim in snapshot.of_kind("ResourceClaim"):
        for device in claim.facts["devices"]:
            node, name = device["pool"], device["device"]
            flavor, card = flavor_of.get(node), card_of(name)
            if flavor is None or device["driver"] != DRA_DRIVER or {(node, name), (node, card)} & unhealthy:
                continue
            if key := pools.get((flavor.name, COMPUTE_SLICES)):
                yield UnitsUsed(claim, node, key, _part(flavor.geometry, name), card)
            elif key := pools.get((flavor.name, dra_resources.GPU_SHARES)):
                yield UnitsUsed(claim, node, key, Fraction(device.get("consumed", {}).get("shares", 1)))
            elif (key := f"{flavor.name}/{dra_resources.pool_of(profiles.get((node, name), ''))}") in keys:
                yield UnitsUsed(claim, node, key, Fraction(1))


def _part(geometry: Geometry | None, device: str) -> Fraction:
    """Part of a card that is cut on demand which the device has; all of it where it is no known part."""
    place = layouts.known_placement(geometry, device) if geometry else None
    return Fraction(place.size, geometry.memory) if geometry and place else Fraction(1)


def rooms(
    snapshot: Snapshot, found: Discovered, metered: Collection[str], per_card: Mapping[str, NodeShare]
) -> dict[str, Room]:
    """How much of each node that is offered cannot have its share; ``per_card`` is what goes with a card, by flavor."""
    offered = {node.name: node for node in found.nodes if node.flavor and node.ready}
    parts = {pool.key: pool.card_part for pool in found.pools}
    supplied = {name: _supplied(node, parts) for name, node in offered.items()}
    use = _uses(snapshot, found, metered, {name: per_card[node.flavor] for name, node in offered.items()}, parts)
    return {
        name: node_room.of_node(name, supplied[name], use.get(name, NodeUse()), per_card[node.flavor])
        for name, node in offered.items()
    }


def _supplied(node: FoundNode, parts: Mapping[str, Fraction]) -> Supplied:
    units = {f"{node.flavor}/{pool}": count for pool, count in node.units.items()}
    return Supplied(node.gives, units, {pool: parts[pool] for pool in units})


def _uses(
    snapshot: Snapshot,
    found: Discovered,
    metered: Collection[str],
    per_card: Mapping[str, NodeShare],
    parts: Mapping[str, Fraction],
) -> dict[str, NodeUse]:
    """What is on each node of ``per_card``."""
    served = {claim.facts.get("pod", "") for claim in snapshot.of_kind("ResourceClaim") if claim.uid in metered}
    units: dict[tuple[str, bool], dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    cards: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for one in units_used(snapshot, found):
        holder = _holder(one.by, metered, served)
        units[one.node, bool(holder)][one.pool] += one.units
        if holder:
            cards[one.node, holder] += one.units * parts[one.pool]
    foreign, asked = _asked(snapshot, metered, served)
    beyond: dict[str, Counter[str]] = defaultdict(Counter)
    for (node, holder), amounts in asked.items():
        if node in per_card:
            beyond[node] += amounts - Counter(vars(per_card[node].part(cards[node, holder])))
    return {
        node: NodeUse(NodeShare(**foreign[node]), NodeShare(**beyond[node]), units[node, False], units[node, True])
        for node in per_card
    }


def _asked(
    snapshot: Snapshot, metered: Collection[str], served: Collection[str]
) -> tuple[dict[str, Counter[str]], dict[tuple[str, str], Counter[str]]]:
    """What pods ask of each node: all that have no share there, and each holder of one. The portal's own pod that keeps
    a slice has the slot of its share, and asks of the system's room what little it needs besides."""
    foreign: dict[str, Counter[str]] = defaultdict(Counter)
    by_holder: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pod in bound(snapshot):
        node, holder = pod.facts["node"], _holder(pod, metered, served)
        amounts = Counter({name: pod.facts.get(name, 0) for name in ("cpu_millicores", "memory_mib")})
        of_holder = Counter() if pod.facts.get("holder") else amounts
        if holder:
            by_holder[node, holder] += of_holder + Counter(pods=1)
            foreign[node] += amounts - of_holder
        else:
            foreign[node] += amounts + Counter(pods=1)
    return foreign, by_holder


def _holder(seen: ObservedObject, metered: Collection[str], served: Collection[str]) -> str:
    """Who has a share that the pod or the claim is part of: an allocation, or the pod of a queued Job; "" for none."""
    if seen.allocation:
        return f"{seen.ref.namespace}/{seen.allocation}"
    if seen.uid in served or (seen.uid in metered and seen.ref.kind == "Pod"):
        return seen.uid
    return str(seen.facts.get("pod", "")) if seen.uid in metered else ""


def with_rooms(found: Discovered, rooms: Mapping[str, Room]) -> Discovered:
    """What was found, its nodes with what of them is blocked, and with the sentence that says so."""
    nodes = tuple(
        replace(
            node,
            blocked=rooms[node.name].blocked,
            problem="; ".join(filter(None, (node.problem, rooms[node.name].problem))),
        )
        if node.name in rooms
        else node
        for node in found.nodes
    )
    return replace(found, nodes=nodes)


def blocked_units(rooms: Iterable[Room]) -> dict[str, int]:
    """Units by pool that are free and blocked."""
    return dict(sum((Counter(room.blocked_units) for room in rooms), Counter()))
