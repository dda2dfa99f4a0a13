"""The CPU, memory and pods of its node that go with a slice, so that no slice can starve another. Pure.

1. A part of what a node can give pods (``status.allocatable``) is reserved for the system: the daemons of every node.
2. The rest is divided evenly by its GPUs; a flavor's GPU has the least that any of the flavor's nodes gives.
3. A slice has the part of that which it has of the GPU's memory. Parts of one GPU never exceed it, so what goes with
   all slices of a node never exceeds the node.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

PODS_PER_SLICE = 16
SYSTEM_CPU_MILLICORES, SYSTEM_MEMORY_MIB, SYSTEM_PODS = 1000, 2048, 20
SYSTEM_PART = Fraction(1, 50)
"""Of large nodes the system has this part, where that is more."""


@dataclass(frozen=True)
class NodeShare:
    """CPU in millicores, memory in MiB, and pods; all 0 if no node has reported its capacity."""

    cpu_millicores: int = 0
    memory_mib: int = 0
    pods: int = 0

    def __bool__(self) -> bool:
        return self.cpu_millicores > 0 and self.memory_mib > 0

    def part(self, part: Fraction) -> "NodeShare":
        """Return that part of each, rounded down."""
        return NodeShare(int(self.cpu_millicores * part), int(self.memory_mib * part), int(self.pods * part))

    def times(self, count: int) -> "NodeShare":
        return NodeShare(self.cpu_millicores * count, self.memory_mib * count, self.pods * count)

    @property
    def amounts(self) -> dict[str, str]:
        """Return CPU and memory as Kubernetes writes them."""
        return {"cpu": f"{self.cpu_millicores}m", "memory": f"{self.memory_mib}Mi"}

    def at_most(self, other: "NodeShare") -> "NodeShare":
        return NodeShare(
            min(self.cpu_millicores, other.cpu_millicores),
            min(self.memory_mib, other.memory_mib),
            min(self.pods, other.pods),
        )


MIN_SHARE = NodeShare(100, 256, 1)


def beside_system(allocatable: NodeShare) -> NodeShare:
    """Return what a node has left for slices."""
    system = allocatable.part(SYSTEM_PART)
    return NodeShare(
        max(0, allocatable.cpu_millicores - max(system.cpu_millicores, SYSTEM_CPU_MILLICORES)),
        max(0, allocatable.memory_mib - max(system.memory_mib, SYSTEM_MEMORY_MIB)),
        max(0, allocatable.pods - SYSTEM_PODS),
    )


def per_gpu(nodes: Iterable[tuple[NodeShare, Fraction]]) -> NodeShare:
    """Return what goes with a GPU: the least over ``nodes``, each with what it can give pods and its GPUs."""
    shares = [beside_system(allocatable).part(1 / gpus) for allocatable, gpus in nodes if allocatable and gpus]
    least = shares[0] if shares else NodeShare()
    for share in shares[1:]:
        least = least.at_most(share)
    return least


@lru_cache(maxsize=1024)
def per_slice(gpu: NodeShare, part: Fraction, *, holders: int) -> NodeShare:
    """Return what goes with a slice that is ``part`` of a GPU; ``holders`` pods of the portal's own run beside its
    pods.

    At least one pod, else nothing could use it; at most PODS_PER_SLICE.
    """
    if not gpu:
        return NodeShare(pods=PODS_PER_SLICE)
    share = gpu.part(part)
    return NodeShare(share.cpu_millicores, share.memory_mib, min(PODS_PER_SLICE, max(1, share.pods - holders)))


def of_claim(gpu: NodeShare, part: Fraction) -> NodeShare:
    """Return what goes with a claim that takes ``part`` of a GPU, or several GPUs; one pod of the portal's own holds
    it.

    At least one pod, and at most PODS_PER_SLICE for each GPU. A claim with admin access only takes no part of any
    GPU: its pods have MIN_SHARE.
    """
    if not gpu:
        return NodeShare(pods=PODS_PER_SLICE)
    share = gpu.part(part)
    pods = min(PODS_PER_SLICE * max(1, int(part)), max(1, share.pods - 1))
    return NodeShare(share.cpu_millicores, share.memory_mib, pods) or MIN_SHARE
