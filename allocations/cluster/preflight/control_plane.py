"""Checks of the control plane: its version, its APIs and the custom resources it serves. Pure."""

import re
from collections.abc import Collection, Iterator

from allocations.cluster.preflight.findings import APPLY, ok_or_problem, unreadable
from allocations.cluster.preflight.guards import VALIDATING
from allocations.cluster.preflight.kueue import KUEUE_KINDS, KUEUE_VERSION
from allocations.cluster.preflight.types import ClusterFacts, Finding, ReadError, Requirements

MIN_VERSION = (1, 35, 0)
TESTED_VERSIONS = "1.35 to 1.37"


def kubernetes_version(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that the API server is not older than ``MIN_VERSION``."""
    name = "Kubernetes"
    if isinstance(facts.version, ReadError):
        yield unreadable(name, facts.version)
        return
    numbers = tuple(int(n) for n in re.findall(r"\d+", facts.version)[:3])
    lowest = ".".join(map(str, MIN_VERSION))
    yield ok_or_problem(
        name,
        numbers >= MIN_VERSION,
        facts.version,
        f"upgrade to {lowest} or later: 1.34 refuses guards that use CEL's flatten and distinct (tested with "
        f"{TESTED_VERSIONS})",
    )


def apis(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that Dynamic Resource Allocation and ValidatingAdmissionPolicy are served."""
    if isinstance(facts.served, ReadError):
        yield unreadable("APIs", facts.served)
        return
    yield _served(
        facts.served, "Dynamic Resource Allocation", "resource.k8s.io/v1", "upgrade to Kubernetes 1.35 or later"
    )
    api = f"admissionregistration.k8s.io/v1/{VALIDATING}"
    yield _served(facts.served, VALIDATING, api, "the guards need it: upgrade to Kubernetes 1.35 or later")


def _served(served: Collection[str], check: str, api: str, fix: str) -> Finding:
    return ok_or_problem(check, api in served, f"{api} is {'served' if api in served else 'not served'}", fix)


def definitions(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check the CustomResourceDefinitions of the portal and of Kueue."""
    yield _definition(facts, "gpuprojects.gpu-portal.io", "v1", APPLY)
    for plural in KUEUE_KINDS:
        fix = "install Kueue 0.19 or later: https://kueue.sigs.k8s.io/docs/installation/"
        yield _definition(facts, f"{plural}.kueue.x-k8s.io", KUEUE_VERSION, fix)


def _definition(facts: ClusterFacts, name: str, version: str, fix: str) -> Finding:
    versions = facts.crds.get(name, ())
    if isinstance(versions, ReadError):
        return unreadable(name, versions)
    found = f"serves {', '.join(sorted(versions))}" if versions else "missing"
    return ok_or_problem(name, version in versions, found, fix)
