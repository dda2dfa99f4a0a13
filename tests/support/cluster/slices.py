"""Every kind of slice on every backend: the request, and the nodes of the simulated fleet that have it.

The rows of docs/concepts/slices.md, which `tests/cluster/test_every_slice.py` writes from its observations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WHOLE, HARDWARE, SHARED = "full", "hardware", "none"


@dataclass(frozen=True)
class Row:
    """A kind of slice on a backend. ``nodes`` is the fleet's kind of node; ``slice`` is the offering's id after the
    flavor; ``body`` is the request without project, offering and count.
    """

    title: str
    path: str
    nodes: str
    slice: str
    isolation: str
    count: int = 1
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> bool:
        """Return whether Kubernetes names the device."""
        return self.path == "DRA"

    @property
    def key(self) -> str:
        return f"{self.title}, {self.path}"


PLUGIN, DRA = "device plugin", "DRA"
TWO_ON_ONE_ROOT = {
    "requests": [{"name": "pair", "device": "gpu", "count": 2}],
    "constraints": [{"match_attribute": "resource.kubernetes.io/pcieRoot", "requests": ["pair"]}],
}
TWO_SHARES = {"requests": [{"name": "part", "device": "gpu", "capacity": {"shares": "2"}}]}
MPS = {"strategy": "MPS", "active_thread_percentage": 50, "pinned_memory_limit": "10Gi"}
ROWS = (
    Row("Whole GPU", PLUGIN, "l40s", "whole", WHOLE),
    Row("Whole GPU", DRA, "h100", "whole", WHOLE, count=2),
    Row("Whole GPU, not cut", DRA, "a10-dra", "whole", WHOLE),
    Row("MIG, strategy mixed", PLUGIN, "a100", "mig-2g.20gb", HARDWARE),
    Row("MIG, strategy single", PLUGIN, "a30-single", "mig-1g.6gb", HARDWARE),
    Row("MIG, dynamic", DRA, "h100", "mig-3g.40gb", HARDWARE),
    Row("MIG, dynamic, small", DRA, "h100", "mig-1g.10gb", HARDWARE, count=3),
    Row("MIG, static", DRA, "a100-static", "mig-3g.40gb", HARDWARE),
    Row("MIG, static, MPS among its pods", DRA, "a100-static", "mig-3g.40gb", SHARED, body={"sharing": MPS}),
    Row("Time-sliced, renamed", PLUGIN, "t4", "shared", SHARED),
    Row("Time-sliced, not renamed", PLUGIN, "t4-plain", "shared", SHARED),
    Row("MPS", PLUGIN, "l4-mps", "shared", SHARED),
    Row("MIG and time-slicing", PLUGIN, "a100-shared", "shared-1g.10gb", SHARED),
    Row("Consumable shares", DRA, "l40s-shares", "shared", SHARED, count=2),
    Row(
        "Whole GPU, time-sliced by its pods",
        DRA,
        "h100",
        "whole",
        SHARED,
        body={"sharing": {"strategy": "TimeSlicing"}},
    ),
    Row("Own claim", DRA, "h100", "claim", WHOLE, body={"claim": TWO_ON_ONE_ROOT}),
    Row("Own claim of shares", DRA, "l40s-shares", "claim", SHARED, body={"claim": TWO_SHARES}),
    Row("vGPU", PLUGIN, "a40-vgpu", "whole", SHARED),
)
SWITCHED_ON = sorted({row.nodes for row in ROWS} - {"h100", "a100", "l40s", "t4"})
