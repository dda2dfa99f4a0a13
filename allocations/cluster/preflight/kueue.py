"""Checks of Kueue's configuration and its visibility API. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from allocations.cluster.preflight.findings import ok, ok_or_problem
from allocations.cluster.preflight.types import ClusterFacts, Document, Finding, ReadError, Requirements, Status

KUEUE_VERSION = "v1beta2"
KUEUE_KINDS = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors")
KUEUE_GATES_OFF = (
    "KueueDRAIntegration",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
)
KUEUE_GATES_ON = ("UnadmittedWorkloadsObservability", "UnadmittedWorkloadsExplicitStatus")
KUEUE_EXCLUDED = ("cpu", "memory", "ephemeral-storage", "hugepages-")
KUEUE_MANUAL = "change Kueue's ConfigMap kueue-manager-config and restart Kueue"


def visibility(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check Kueue's visibility API. Without it, queue positions are counted by the portal."""
    name = "Kueue's visibility API"
    fix = "enable Kueue's visibilityServer; without it, places in the queue leave out tenants' own Jobs"
    yield Finding(name, Status.ADVICE, facts.visibility, fix) if facts.visibility else ok(name, "answers")


def kueue_configuration(facts: ClusterFacts, requirements: Requirements) -> Iterator[Finding]:
    """Check Kueue's feature gates, integrations, resource settings and ``waitForPodsReady``."""
    name = "Kueue's configuration"
    flags = _gates_of_flags(facts.kueue_pod)
    if isinstance(facts.kueue, ReadError):
        if flags:  # Kueue reads its gates from its flags or from its configuration, never from both
            yield _dra_gates(flags)
        gates = ", ".join(KUEUE_GATES_OFF)
        yield Finding(
            name,
            Status.ADVICE,
            f"not read: {facts.kueue}",
            f"give it by --kueue-config FILE, or see yourself: gates {gates} false, "
            f"{' and '.join(KUEUE_GATES_ON)} true; no framework pod; "
            f"resources.quotaCheckStrategy BlockUndeclared, excludeResourcePrefixes {', '.join(KUEUE_EXCLUDED)}; "
            f"waitForPodsReady.timeout above {requirements.start_deadline_s} s, "
            "with recoveryTimeout and requeuingStrategy.backoffLimitCount",
        )
        return
    switches = flags or facts.kueue.get("featureGates") or {}
    yield _dra_gates(switches)
    off = [gate for gate in KUEUE_GATES_ON if switches.get(gate) is not True]
    shown = f"off: {', '.join(off)}" if off else "on"
    yield ok_or_problem("Kueue's observability gates", not off, shown, f"{KUEUE_MANUAL}: set them true")
    frameworks = (facts.kueue.get("integrations") or {}).get("frameworks") or []
    pod = "pod" in frameworks
    yield ok_or_problem(
        "Kueue's pod integration", not pod, "on" if pod else "off", f"{KUEUE_MANUAL}: remove framework pod"
    )
    resources = facts.kueue.get("resources") or {}
    strategy = resources.get("quotaCheckStrategy", "unset")
    yield ok_or_problem(
        "Kueue's undeclared resources",
        strategy == "BlockUndeclared",
        str(strategy),
        f"{KUEUE_MANUAL}: resources.quotaCheckStrategy: BlockUndeclared, or a GPU not yet discovered is free",
    )
    prefixes = resources.get("excludeResourcePrefixes") or []
    missing = [prefix for prefix in KUEUE_EXCLUDED if prefix not in prefixes]
    yield ok_or_problem(
        "Kueue's excluded resources",
        not missing,
        f"counts {', '.join(missing)}" if missing else ", ".join(prefixes),
        f"{KUEUE_MANUAL}: add them to resources.excludeResourcePrefixes",
    )
    yield from _pods_ready(facts.kueue.get("waitForPodsReady") or {}, requirements)


def _dra_gates(switches: Mapping[str, Any]) -> Finding:
    on = [gate for gate in KUEUE_GATES_OFF if switches.get(gate) is not False]
    fix = f"{KUEUE_MANUAL}: set them false. With them Kueue charges a claim for the pods that use it, beside its lease"
    return ok_or_problem("Kueue's DRA gates", not on, f"on: {', '.join(on)}" if on else "off", fix)


def _gates_of_flags(pod: Document | ReadError | None) -> dict[str, bool]:
    """Return the feature gates that the flags of Kueue's container set; empty if none or unknown."""
    if pod is None or isinstance(pod, ReadError):
        return {}
    flags = [argument.partition("=") for argument in (*pod.get("command", ()), *pod.get("args", ()))]
    pairs = [pair for name, _, gates in flags if name == "--feature-gates" for pair in gates.split(",") if pair]
    return {gate.strip(): value.strip().lower() == "true" for gate, _, value in (pair.partition("=") for pair in pairs)}


def _pods_ready(wait: Mapping[str, Any], requirements: Requirements) -> Iterator[Finding]:
    """Check how long Kueue reserves quota for pods that are not ready, and how often it requeues them."""
    timeout = wait.get("timeout", "")
    yield ok_or_problem(
        "Kueue's waitForPodsReady",
        _seconds(timeout) > requirements.start_deadline_s,
        timeout or "off",
        f"{KUEUE_MANUAL}: waitForPodsReady.timeout: 300s, above the portal's {requirements.start_deadline_s} s",
    )
    recovery = wait.get("recoveryTimeout", timeout)
    yield ok_or_problem(
        "Kueue's recovery timeout",
        _seconds(recovery) > 0,
        recovery or "off",
        f"{KUEUE_MANUAL}: waitForPodsReady.recoveryTimeout: 300s, or a Job whose pods are lost keeps its quota",
    )
    retries = (wait.get("requeuingStrategy") or {}).get("backoffLimitCount")
    yield ok_or_problem(
        "Kueue's requeuing limit",
        retries is not None,
        "none" if retries is None else str(retries),
        f"{KUEUE_MANUAL}: waitForPodsReady.requeuingStrategy.backoffLimitCount: 5, or a Job whose pods never start "
        "reserves quota again and again",
    )


def _seconds(duration: str) -> float:
    """Return a Go duration of hours, minutes and seconds in seconds."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([\d.]+)(h|m|s)(?![a-z])", duration))
