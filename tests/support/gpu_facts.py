"""Sample nodes and ResourceSlices as the catalog's plain types."""

from quotas.catalog.discovery import DeviceFact, NodeFact, SliceFact
from quotas.catalog.types import Discovered

TAINT = (("nvidia.com/gpu", "present", "NoSchedule"),)


def plugin_node(name="l40s-0", product="NVIDIA-L40S", amounts=None, memory="46068", **labels) -> NodeFact:
    amounts = {"nvidia.com/gpu": 4} if amounts is None else amounts
    return NodeFact(
        name=name,
        labels={
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.memory": memory,
            "nvidia.com/gpu.family": "ada-lovelace",
            "nvidia.com/gpu.compute.major": "8",
            "nvidia.com/gpu.compute.minor": "9",
            **{f"nvidia.com/{label.replace('__', '-').replace('_', '.')}": value for label, value in labels.items()},
        },
        allocatable=amounts,
        capacity=amounts,
        taints=TAINT,
    )


def dra_node(name="h100-0", product="NVIDIA-H100-80GB-HBM3") -> NodeFact:
    return plugin_node(name, product, {}, "81559")


def gpu(index=0, product="NVIDIA H100 80GB HBM3", taints=(), counters=None) -> DeviceFact:
    attributes = {"type": "gpu", "uuid": f"GPU-{index}", "productName": product}
    return DeviceFact(f"gpu-{index}", attributes, {"memory": "81559Mi"}, counters or {}, taints)


def slices_of(node: str, *devices: DeviceFact, generation=1, count=1) -> SliceFact:
    return SliceFact(f"{node}-slice", "gpu.nvidia.com", node, node, generation, count, devices)


def divisible_gpu(index=0) -> tuple[DeviceFact, ...]:
    """Return the devices of a GPU with dynamic MIG: the GPU, and profiles that show how it can be divided."""
    memory = {f"memory-slice-{place}": "1" for place in range(8)}
    parts = [("1g.10gb", 19, ("memory-slice-0",)), ("7g.80gb", 0, tuple(memory))]
    return (
        gpu(index, counters={f"gpu-{index}-counter-set": {"memory": "81152Mi", **memory}}),
        *(
            DeviceFact(
                f"gpu-{index}-mig-{profile.replace('.', '')}-{gi_id}-0",
                {
                    "type": "mig",
                    "profile": profile,
                    "parentUUID": f"GPU-{index}",
                    "productName": "NVIDIA H100 80GB HBM3",
                },
                {"memory": "9984Mi", "multiprocessors": "16"},
                counters={f"gpu-{index}-counter-set": dict.fromkeys(taken, "1")},
            )
            for profile, gi_id, taken in parts
        ),
    )


def problems(found: Discovered) -> tuple[tuple[str, str], ...]:
    """Return (node, sentence) for each node with a problem."""
    return tuple((node.name, node.problem) for node in found.nodes if node.problem)
