"""Sample specs: one slice by DRA, and two by device plugin."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from allocations.domain.allocation_spec import AllocationSpec, LeaseRecord
from allocations.domain.objects import ResolvedSpec
from quotas.catalog.node_shares import NodeShare

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHOLE = ResolvedSpec(
    id="7",
    name="train",
    project="vision-train",
    team="vision",
    department="research",
    namespace="vision-train",
    offering="h100/whole",
    kind="whole",
    flavor="h100",
    path="dra",
    count=1,
    requests={"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8},
    resource="",
    device_class="gpu.nvidia.com",
    selectors=(),
    node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
    ends_at=NOW + timedelta(hours=8),
    lease_record=LeaseRecord("7", 0, "ada", NOW, AllocationSpec("vision-train", "h100/whole", name="train")),
    node_share=NodeShare(23_250, 255_000, 16),
)
L40S = replace(
    WHOLE,
    offering="l40s/whole",
    flavor="l40s",
    path="device-plugin",
    count=2,
    requests={"nvidia.com/gpu": 1},
    resource="nvidia.com/gpu",
    device_class="",
    node_share=NodeShare(30_380, 252_886, 32),
)
