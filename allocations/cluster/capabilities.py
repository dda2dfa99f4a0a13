"""What a cluster can do that another version of Kubernetes cannot. Pure.

API discovery names the kinds that are served. Features of fields and of the scheduler are no kinds: the API server's
``/metrics`` says by ``kubernetes_feature_enabled`` which are on. Where it gives no metrics, the default of its version
is assumed.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

FEATURE_METRIC = "kubernetes_feature_enabled"
MUTATING_POLICIES = "admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
DEVICE_TAINT_RULES = "resource.k8s.io/v1/devicetaintrules"
PARTITIONABLE_DEVICES, EXTENDED_RESOURCES = "DRAPartitionableDevices", "DRAExtendedResource"
ON_SINCE = {PARTITIONABLE_DEVICES: (1, 36), EXTENDED_RESOURCES: (1, 36)}
"""Feature gate → the first version of Kubernetes whose default is on."""
GANG_KINDS = ("podgroups", "workloads", "compositepodgroups")
_SAMPLE = re.compile(rf'^{FEATURE_METRIC}{{.*?name="(\w+)".*}} (\d)')


@dataclass(frozen=True)
class ClusterCapabilities:
    """What a cluster can do."""

    mutating_policies: bool
    """Serves MutatingAdmissionPolicy at ``v1``: from Kubernetes 1.36."""
    partitionable_devices: bool
    """Knows the counters of devices, so NVIDIA's DRA driver can divide GPUs on demand: from 1.36."""
    extended_resources: bool
    """A DeviceClass can serve an extended resource such as ``nvidia.com/gpu``: from 1.36, always from 1.37."""
    device_taint_rules: bool
    """Serves DeviceTaintRule at ``v1``, by which an operator drains a device: from 1.37."""
    gang_kinds: tuple[str, ...]
    """``group/version/plural`` of the scheduler's own kinds of gangs, which are refused in projects."""


def capabilities(version: str, served: Collection[str], features: Mapping[str, bool]) -> ClusterCapabilities:
    """Return what a cluster can do.

    ``version`` is its ``gitVersion``, ``served`` has ``group/version/plural``, ``features`` the feature gates known.
    """
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])

    def has(gate: str) -> bool:
        return features.get(gate, number >= ON_SINCE[gate])

    return ClusterCapabilities(
        mutating_policies=MUTATING_POLICIES in served,
        partitionable_devices=has(PARTITIONABLE_DEVICES),
        extended_resources=has(EXTENDED_RESOURCES),
        device_taint_rules=DEVICE_TAINT_RULES in served,
        gang_kinds=tuple(sorted(api for api in served if _is_gang(api))),
    )


def _is_gang(api: str) -> bool:
    group, _, rest = api.partition("/")
    return group == "scheduling.k8s.io" and rest.rpartition("/")[2] in GANG_KINDS


def features(lines: Iterable[bytes]) -> dict[str, bool]:
    """Return which feature gates are on, from the API server's metrics in Prometheus text format."""
    samples = (_SAMPLE.match(line.decode()) for line in lines if line.startswith(FEATURE_METRIC.encode()))
    return {sample[1]: sample[2] == "1" for sample in samples if sample}
