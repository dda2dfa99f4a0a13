"""Checks of GPU nodes, flavors and DeviceClasses. Pure."""

from collections.abc import Iterator

from allocations.cluster.preflight.findings import ok, ok_or_problem, unreadable
from allocations.cluster.preflight.types import ClusterFacts, Finding, ReadError, Requirements, Status
from quotas.catalog.nvidia import DRA_DRIVER, MIG_CLASS, WHOLE_GPU_CLASS

DEVICE_CLASSES = (WHOLE_GPU_CLASS, MIG_CLASS)


def device_classes(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that NVIDIA's DeviceClasses exist if its DRA driver publishes devices."""
    name = "DeviceClasses"
    if isinstance(facts.classes, ReadError):
        yield unreadable(name, facts.classes)
    elif not facts.uses_dra:
        yield ok(name, f"no device is published by {DRA_DRIVER}, so none is needed")
    else:
        missing = [c for c in DEVICE_CLASSES if c not in facts.classes]
        fix = "install NVIDIA's DRA driver with its chart, which brings them"
        found = f"missing: {', '.join(missing)}" if missing else ", ".join(DEVICE_CLASSES)
        yield ok_or_problem(name, not missing, found, fix)


def gpu_nodes(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that GPU flavors are discovered, and report what keeps nodes from being offered."""
    if isinstance(facts.nodes, ReadError):
        yield unreadable("GPU nodes", facts.nodes)
        return
    for node, problem in sorted(facts.nodes.items()):
        if problem:
            yield Finding(f"Node {node}", Status.ADVICE, problem, "as it says")
    found = ", ".join(sorted(facts.flavors)) or f"none on {len(facts.nodes)} GPU nodes"
    fix = "install the GPU Operator (device plugin and GPU feature discovery, or DRA driver) and taint the GPU nodes"
    yield ok_or_problem("GPU flavors", bool(facts.flavors), found, fix)
