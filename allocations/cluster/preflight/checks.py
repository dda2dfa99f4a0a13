"""Checks whether a cluster is ready for the portal, in the order in which an operator fixes problems. Pure.

``allocations.cluster.preflight.collect`` reads the facts from the cluster.
"""

from collections.abc import Callable, Iterator

from allocations.cluster.preflight import access, control_plane, etcd, gpus, guards, kueue, versions
from allocations.cluster.preflight.types import ClusterFacts, Finding, Requirements, Status

Check = Callable[[ClusterFacts, Requirements], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    control_plane.kubernetes_version,
    control_plane.apis,
    versions.mutation,
    versions.features,
    control_plane.definitions,
    versions.kueue_version,
    kueue.visibility,
    kueue.kueue_configuration,
    guards.guards,
    guards.priority_classes,
    guards.tenant_roles,
    access.fairness,
    etcd.etcd_size,
    etcd.etcd_quota,
    gpus.device_classes,
    access.rights,
    gpus.gpu_nodes,
)


def run_checks(facts: ClusterFacts, requirements: Requirements) -> list[Finding]:
    """Return the findings of all checks, in their order."""
    return [finding for check in CHECKS for finding in check(facts, requirements)]


def is_ready(findings: list[Finding]) -> bool:
    """Return whether none of the findings is a problem."""
    return not any(finding.status is Status.PROBLEM for finding in findings)
