"""Discovers flavors, pools and offerings from nodes and ResourceSlices; nothing is configured by hand. Pure.

1. Each node is read by one backend (`node_readings`).
2. Nodes with the same product, backend and strategy are one flavor, whose name never changes.
3. Each kind of slice of a flavor is an offering, and takes units of a pool.
4. The slices of a fixed MIG layout share the price of the flavor's GPUs (`fixed_layouts`).
5. A node that cannot be offered, or whose labels contradict what it publishes, has a problem: a sentence that says why
   and what to do.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from quotas.catalog import fixed_layouts, node_labels, node_selectors, node_shares, shortnames
from quotas.catalog.node_labels import PRODUCT_LABEL
from quotas.catalog.node_readings import GPU_TAINT, ReadNode, gpu_taints, read_nodes
from quotas.catalog.types import (
    ClassFact,
    DeviceFact,
    Discovered,
    FoundDevice,
    FoundFlavor,
    FoundNode,
    FoundOffering,
    FoundPool,
    GpuMemory,
    Identity,
    NodeFact,
    SliceFact,
    Supply,
)

__all__ = ["ClassFact", "DeviceFact", "Discovered", "Identity", "NodeFact", "SliceFact", "discover"]

MAX_ARCHITECTURE, MAX_CAPABILITY = 40, 10
"""What the columns of a flavor have room for."""


def discover(
    nodes: Iterable[NodeFact],
    slices: Iterable[SliceFact],
    current_names: Mapping[Identity, str] | None = None,
    reserved_names: Collection[str] = (),
    classes: Iterable[ClassFact] = (),
    current_shares: Mapping[str, Fraction] | None = None,
    gpu_memory: GpuMemory | None = None,
) -> Discovered:
    """Return the catalog of one cluster.

    `current_names` are the names that its flavors have already, `reserved_names` those of flavors in other clusters,
    `current_shares` the `gpu_share` that its offerings have already, by key, `gpu_memory` what is known of
    whole GPUs. The result depends on the facts only, not on their order.
    """
    nodes = list(nodes)
    sites = read_nodes(nodes, slices, classes, gpu_memory or GpuMemory())
    groups: dict[Identity, list[ReadNode]] = defaultdict(list)
    for site in sites:
        if site.offered:
            groups[site.identity].append(site)
    names = shortnames.assign(
        ((key, _memory(group)) for key, group in groups.items()), current_names or {}, reserved_names
    )
    selectors = {key: node_selectors.build(key, [site.node.labels for site in group]) for key, group in groups.items()}
    ambiguous = node_selectors.ambiguous(selectors, names)
    flavors = {key: _flavor(key, names[key], groups[key], selectors[key]) for key in groups if key not in ambiguous}
    found = [_found_node(site, flavors.get(site.identity), ambiguous.get(site.identity, "")) for site in sites]
    changing = {node.labels.get(PRODUCT_LABEL, "") for node in nodes if fixed_layouts.is_changing(node.labels)}
    kept = {key: _kept_shares(groups[key], current_shares or {}, changing) for key in flavors}
    return Discovered(
        flavors=tuple(sorted(flavors.values(), key=lambda flavor: flavor.name)),
        pools=tuple(sorted((p for k in flavors for p in _pools(names[k], groups[k])), key=lambda pool: pool.key)),
        offerings=tuple(
            sorted((o for k in flavors for o in _offerings(names[k], groups[k], kept[k])), key=lambda o: o.key)
        ),
        nodes=tuple(found),
        devices=tuple(d for key in flavors for d in _devices(names[key], groups[key])),
    )


def _is_usable(node: NodeFact) -> bool:
    return node.ready and not node.unschedulable


def _memory(group: Sequence[ReadNode]) -> int:
    """Return the least memory of the flavor's GPUs in MiB, as labelled; 0 without a label."""
    return min(node_labels.number(site.node.labels, node_labels.MEMORY_LABEL) for site in group)


def _flavor(key: Identity, name: str, group: Sequence[ReadNode], selector: Mapping[str, str]) -> FoundFlavor:
    labels = group[0].node.labels
    major, minor = (
        labels.get("nvidia.com/gpu.compute.major", ""),
        labels.get("nvidia.com/gpu.compute.minor", ""),
    )
    effects = sorted({effect for site in group for effect in gpu_taints(site.node)})
    return FoundFlavor(
        name=name,
        identity=key,
        architecture=labels.get("nvidia.com/gpu.family", "")[:MAX_ARCHITECTURE],
        memory_mib=_memory(group),
        compute_capability=f"{major}.{minor}"[:MAX_CAPABILITY] if major else "",
        node_selector=selector,
        tolerations=tuple({"key": GPU_TAINT, "operator": "Exists", "effect": effect} for effect in effects),
        partitionable=key.strategy == "dynamic-mig",
        geometry=group[0].reading.geometry,
        per_gpu=node_shares.per_gpu((site.node.gives, _gpus(site)) for site in group),
    )


def _gpus(site: ReadNode) -> Fraction:
    """Return the number of a node's GPUs, counting a divided GPU by its parts."""
    if site.reading.geometry:
        return Fraction(max(_units(site, lambda supply: supply.max_usable).values(), default=0))
    return sum((supply.max_usable * supply.memory_part for supply in site.reading.supplies), Fraction(0))


def _supplies(group: Sequence[ReadNode]) -> dict[tuple[str, str, str], list[tuple[ReadNode, Supply]]]:
    """Group the supplies of a flavor's nodes by pool, kind and profile: each group is an offering."""
    found: dict[tuple[str, str, str], list[tuple[ReadNode, Supply]]] = defaultdict(list)
    for site in group:
        for supply in site.reading.supplies:
            found[supply.pool, supply.kind, supply.profile].append((site, supply))
    return found


def _pools(flavor: str, group: Sequence[ReadNode]) -> list[FoundPool]:
    units = {supply.pool: supply.unit for site in group for supply in site.reading.supplies}
    parts = {
        supply.pool: Fraction(1) if site.reading.geometry else supply.memory_part
        for site in group
        for supply in site.reading.supplies
    }
    totals: Counter[str] = Counter()
    for site in group:
        if _is_usable(site.node):
            totals.update(_units(site, lambda supply: supply.usable))
    return [FoundPool(f"{flavor}/{pool}", flavor, unit, totals[pool], parts[pool]) for pool, unit in units.items()]


def _units(site: ReadNode, count: Callable[[Supply], int]) -> dict[str, int]:
    """Return the units of each pool on a node; all profiles of a divided GPU report the same."""
    cut = site.reading.geometry
    units: dict[str, int] = {}
    for supply in site.reading.supplies:
        per_unit = cut.profile(supply.profile).max_instances if cut and supply.profile else 1
        units[supply.pool] = max(units.get(supply.pool, 0), count(supply) // per_unit)
    return units


def _offerings(flavor: str, group: Sequence[ReadNode], kept: Mapping[str, Fraction]) -> list[FoundOffering]:
    found = [_offering(flavor, supplies, kept) for supplies in _supplies(group).values()]
    return [*found, _custom_claim_offering(found)] if found and group[0].reading.path == "dra" else found


def _custom_claim_offering(offered: Sequence[FoundOffering]) -> FoundOffering:
    """Return the offering of custom claims for a flavor by DRA. Each claim is counted by its own content, so a slice
    consumes nothing here; the price is that of a whole GPU.
    """
    main = min(offered, key=lambda offering: (offering.kind != "whole", -offering.gpu_share, offering.key))
    return FoundOffering(
        key=f"{main.flavor}/claim",
        flavor=main.flavor,
        pool=main.pool,
        kind="claim",
        profile="",
        isolation=main.isolation,
        requests={},
        resource="",
        device_class=main.device_class,
        selectors=(),
        gpu_share=Fraction(1),
        per_node=1,
        sharing=main.sharing,
        replicas=main.replicas,
        memory_mib=max(offering.memory_mib for offering in offered),
    )


def _offering(flavor: str, found: Sequence[tuple[ReadNode, Supply]], kept: Mapping[str, Fraction]) -> FoundOffering:
    supplies = [supply for _, supply in found]
    one = supplies[0]
    key = f"{flavor}/{one.kind}-{one.profile}" if one.profile else f"{flavor}/{one.kind}"
    share = one.gpu_share
    if one.resource and one.profile:
        share = kept.get(key) or fixed_layouts.mean_share([(site.layout, supply) for site, supply in found])
    return FoundOffering(
        key=key,
        flavor=flavor,
        pool=f"{flavor}/{one.pool}",
        kind=one.kind,
        profile=one.profile,
        isolation=one.isolation,
        requests=one.consumes,
        resource=one.resource,
        device_class=one.device_class,
        selectors=one.selectors,
        gpu_share=share,
        per_node=max(supply.max_usable for supply in supplies),
        capacity=one.capacity,
        sharing=one.sharing,
        replicas=one.replicas,
        memory_mib=min(supply.memory_mib for supply in supplies),
        memory_part=one.memory_part,
    )


def _kept_shares(
    group: Sequence[ReadNode], current: Mapping[str, Fraction], changing: Collection[str]
) -> Mapping[str, Fraction]:
    """Return the current shares while a fixed layout of the flavor's GPUs is being changed or not complete, so that no
    price follows what is not final; then none.
    """
    is_changing = group[0].identity.product in changing
    is_final = all(site.layout is None or site.layout.is_complete for site in group)
    return {} if is_final and not is_changing else current


def _devices(flavor: str, group: Sequence[ReadNode]) -> list[FoundDevice]:
    return [replace(device, flavor=flavor) for site in group for device in site.reading.devices]


def _found_node(site: ReadNode, flavor: FoundFlavor | None, problem: str) -> FoundNode:
    problems = (*site.problems, problem) if problem else site.problems
    return FoundNode(
        name=site.node.name,
        flavor=flavor.name if flavor and site.offered else "",
        ready=_is_usable(site.node),
        tainted=bool(gpu_taints(site.node)),
        problem="; ".join(problems),
        capacity=_units(site, lambda supply: supply.max_usable)
        | {supply.pool: supply.max_usable for supply in site.reading.withheld},
        units=_units(site, lambda supply: supply.usable),
        gives=site.node.gives,
        gpus_per_unit=fixed_layouts.gpus_per_unit(site.reading.supplies, site.layout, site.reading.withheld),
        withheld=frozenset(supply.resource for supply in site.reading.withheld),
    )
