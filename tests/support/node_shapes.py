"""Random nodes of a device plugin: what it publishes, with labels as GPU feature discovery writes them for that."""

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from quotas.catalog import layouts
from quotas.catalog.mig_tables import TABLES, Geometry
from quotas.catalog.types import NodeFact
from tests.support.gpu_facts import TAINT

GPU = "nvidia.com/gpu"
PRODUCTS = {"A30": "NVIDIA-A30", "A100-80GB": "NVIDIA-A100-SXM4-80GB", "B300-269GB": "NVIDIA-B300-SXM6-AC"}
FILLED = {
    name: [one for one in layouts.layouts(TABLES[name]) if layouts.is_filled(TABLES[name], one)] for name in PRODUCTS
}


@dataclass(frozen=True)
class NodeShape:
    """A node of so many physical ``gpus``."""

    fact: NodeFact
    gpus: int

    def publishing(self, **amounts: int) -> NodeFact:
        """Return the node with other amounts; ``gpu__shared`` is ``nvidia.com/gpu.shared``."""
        given = {f"nvidia.com/{name.replace('__', '.')}": amount for name, amount in amounts.items()}
        changed = {**self.fact.capacity, **given}
        return replace(self.fact, capacity=changed, allocatable=changed)

    def labelled(self, **labels: str) -> NodeFact:
        return replace(self.fact, labels={**self.fact.labels, **{f"{GPU}.{key}": text for key, text in labels.items()}})


def _shape(gpus: int, product: str, amounts: dict[str, int], **labels: object) -> NodeShape:
    told = {f"{GPU}.{name.replace('__', '-')}": str(value) for name, value in labels.items()}
    all_labels = {f"{GPU}.product": product, f"{GPU}.memory": "81920", **told}
    return NodeShape(NodeFact("node-0", all_labels, amounts, amounts, TAINT), gpus)


@st.composite
def whole(draw: st.DrawFn) -> NodeShape:
    gpus = draw(st.integers(1, 16))
    return _shape(gpus, "NVIDIA-L40S", {GPU: gpus}, count=gpus, replicas=1, sharing__strategy="none")


@st.composite
def shared(draw: st.DrawFn) -> NodeShape:
    gpus, replicas, renamed = draw(st.integers(1, 8)), draw(st.integers(2, 16)), draw(st.booleans())
    strategy = draw(st.sampled_from(["time-slicing", "mps"]))
    product, resource = ("NVIDIA-L40S", f"{GPU}.shared") if renamed else ("NVIDIA-L40S-SHARED", GPU)
    amounts = {resource: gpus * replicas}
    return _shape(gpus, product, amounts, count=gpus, replicas=replicas, sharing__strategy=strategy)


@st.composite
def mixed(draw: st.DrawFn) -> NodeShape:
    """Return a node of which some GPUs are divided, each as it may be."""
    table = draw(st.sampled_from(sorted(PRODUCTS)))
    divided, undivided = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    counts: Counter[str] = Counter()
    for _ in range(divided):
        counts.update(draw(st.sampled_from(FILLED[table])))
    resources = {TABLES[table].profile(name).resource: count for name, count in counts.items()}
    amounts = {**resources, **({GPU: undivided} if undivided else {})}
    shape = _shape(
        divided + undivided, PRODUCTS[table], amounts, count=divided + undivided, replicas=bool(undivided) + 0
    )
    labels = {**shape.fact.labels, **{f"{name}.count": str(count) for name, count in resources.items()}}
    return replace(shape, fact=replace(shape.fact, labels=labels))


@st.composite
def single(draw: st.DrawFn) -> NodeShape:
    """Return a node with MIG by strategy single, of a GPU whose memory no label says."""
    table: Geometry = TABLES[draw(st.sampled_from(sorted(PRODUCTS)))]
    profile, gpus = draw(st.sampled_from(table.profiles)), draw(st.integers(1, 8))
    devices = gpus * profile.max_instances
    product = f"{PRODUCTS[table.name]}-MIG-{profile.name.replace('+', '.')}"
    return _shape(gpus, product, {GPU: devices}, count=devices, replicas=1, memory=profile.memory_mib)


nodes = whole() | shared() | mixed() | single()
