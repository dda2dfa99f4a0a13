"""Reads each node by one backend, as it is to be offered: DRA if the driver publishes slices for it, else the device
plugin. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quotas.catalog import deviceplugin, dra, dra_resources, fixed_layouts, node_labels, storable
from quotas.catalog.fixed_layouts import FixedLayout
from quotas.catalog.node_labels import PRODUCT_LABEL
from quotas.catalog.types import ClassFact, GpuMemory, Identity, NodeFact, Reading, SliceFact

GPU_TAINT = "nvidia.com/gpu"
_KEEPS_AWAY = {"NoSchedule", "NoExecute"}
NOTHING = (
    "it has or had GPUs, and neither the device plugin nor the DRA driver publishes any, so nothing of it is offered; "
    "see whether one of them runs on it"
)


@dataclass(frozen=True)
class ReadNode:
    """A node with what was read there."""

    node: NodeFact
    reading: Reading
    problems: tuple[str, ...]
    offered: bool
    layout: FixedLayout | None

    @property
    def identity(self) -> Identity:
        return Identity(self.node.labels.get(PRODUCT_LABEL, ""), self.reading.path, self.reading.strategy)


def read_nodes(
    nodes: Iterable[NodeFact], slices: Iterable[SliceFact], classes: Iterable[ClassFact], gpu_memory: GpuMemory
) -> list[ReadNode]:
    """Return the nodes with GPUs, by name."""
    pieces, extended = dra.by_node(slices), dra_resources.extended_resources(classes)
    known = _with_gpu_memory(sorted(nodes, key=lambda node: node.name), gpu_memory)
    found = (_read_node(node, pieces.get(node.name, []), extended) for node in known)
    return _with_one_pool([site for site in found if site])


def _with_one_pool(sites: Sequence[ReadNode]) -> list[ReadNode]:
    """Return the nodes without slices that other nodes of their flavor publish under another resource: an offering has
    one pool, that of the first resource by name.
    """
    pools: dict[tuple[Identity, str, str], str] = {}
    for site in sites:
        for one in site.reading.supplies if site.offered else ():
            key = site.identity, one.kind, one.profile
            pools[key] = min(one.pool, pools.get(key, one.pool))
    return [_with_pools(site, pools) if site.offered else site for site in sites]


def _with_pools(site: ReadNode, pools: Mapping[tuple[Identity, str, str], str]) -> ReadNode:
    supplies = site.reading.supplies
    others = [one for one in supplies if pools[site.identity, one.kind, one.profile] != one.pool]
    if not others:
        return site
    problems = [
        f"other nodes of its flavor publish the slices of its {one.resource or one.pool} as another resource, so it is "
        "not offered here; give the device plugins of both the same configuration"
        for one in others
    ]
    kept = tuple(one for one in supplies if one not in others)
    reading = replace(site.reading, supplies=kept, withheld=(*site.reading.withheld, *others))
    return replace(site, reading=reading, problems=(*site.problems, *problems), offered=bool(kept))


def _with_gpu_memory(nodes: Sequence[NodeFact], known: GpuMemory) -> list[NodeFact]:
    """Return the nodes with the memory of a GPU: as decided, else as labelled, else as nodes of its model are labelled,
    of which the least counts, else as they were.
    """
    models = [node_labels.model(node.labels.get(PRODUCT_LABEL, "")) for node in nodes]
    own = [node_labels.gpu_memory(node.labels) for node in nodes]
    own = [memory if memory <= storable.MAX_NUMBER else 0 for memory in own]
    least: dict[str, int] = {}
    for model, memory in zip(models, own, strict=True):
        if memory:
            least[model] = min(memory, least.get(model, memory))
    labelled = {**known.labelled, **least}
    return [
        replace(node, gpu_memory_mib=known.decided.get(model) or memory or labelled.get(model, 0))
        for node, model, memory in zip(nodes, models, own, strict=True)
    ]


def _read_node(node: NodeFact, slices: Sequence[SliceFact], extended: Mapping[str, str]) -> ReadNode | None:
    """Return the node as it is to be offered, or None if it has no GPU."""
    node, odd = storable.node(node)
    plugin = deviceplugin.read(node)
    reading = _read_slices(node, slices, extended) if slices else plugin
    if reading is None and (odd or node_labels.shows_gpus(node.labels) or any(map(node_labels.is_gpu, node.capacity))):
        reading = Reading("device-plugin", "plain", (), problems=() if odd else (NOTHING,))
    if reading is None:
        return None
    problems = [*reading.problems, *odd]
    if slices and plugin and plugin.supplies:
        problems.append(
            "both the DRA driver and the device plugin publish GPUs here; offered by DRA only. "
            "Remove the device plugin from this node (label nvidia.com/gpu.deploy.device-plugin=false)"
        )
    labelled = bool(node.labels.get(PRODUCT_LABEL))
    if not labelled:
        problems.append(f"no label {PRODUCT_LABEL}, so not offered; GPU feature discovery writes it")
    if not gpu_taints(node):
        problems.append(
            f"no GPU taint, so not offered: any pod could land here. "
            f"Run: kubectl taint nodes {node.name} {GPU_TAINT}=present:NoSchedule"
        )
    offered = labelled and bool(gpu_taints(node)) and (bool(reading.supplies) or reading.has_unknown_division)
    return ReadNode(node, reading, tuple(problems), offered, fixed_layouts.of_node(node, reading.supplies))


def _read_slices(node: NodeFact, slices: Sequence[SliceFact], extended: Mapping[str, str]) -> Reading:
    """Read a node's slices; a form other than NVIDIA's driver publishes becomes a problem of this node only."""
    try:
        reading = dra.read(node, slices, extended)
        supplies, odd = storable.supplies(reading.supplies)
        return replace(reading, supplies=supplies, problems=(*reading.problems, *odd))
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        words = f"its ResourceSlices are not as NVIDIA's DRA driver publishes them, so not offered: {error}"
        return Reading("dra", "plain", (), problems=(words,))


def gpu_taints(node: NodeFact) -> tuple[str, ...]:
    """Return the effects of the node's GPU taints that keep pods away."""
    return tuple(sorted({effect for key, _, effect in node.taints if key == GPU_TAINT and effect in _KEEPS_AWAY}))
