"""Is a cluster ready for the portal? An ordered list of checks over gathered facts; each finds, and says what helps.

Pure: what is read from the cluster comes in as ``Gathered`` (``allocations.cluster.preflight.collect`` reads it).
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from allocations.cluster import names
from allocations.cluster.preflight.types import Expected, Finding, Gathered, Refused, Status
from allocations.domain.etcd_usage import DISARM, FREE, LARGEST, SUGGESTED_MAX, Level, Store, amount
from quotas.catalog.nvidia import DRA_DRIVER, MIG_CLASS, WHOLE_GPU_CLASS

MIN_VERSION = (1, 34, 2)
TESTED = "1.36"
KUEUE_VERSION = "v1beta2"
KUEUE_KINDS = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors")
KUEUE_GATES_OFF = (
    "KueueDRAIntegration",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
)
KUEUE_GATES_ON = ("UnadmittedWorkloadsObservability", "UnadmittedWorkloadsExplicitStatus")
KUEUE_EXCLUDED = ("cpu", "memory", "ephemeral-storage", "hugepages-")
GUARD_PREFIX = "gpu-portal-"
GUARD_KINDS = ("validatingadmissionpolicies", "mutatingadmissionpolicies")
PRIORITIES = {names.HOLDER_CLASS: 1_000_000_000, names.QUEUED_JOB_CLASS: 100}
"""Of PriorityClasses that preempt nobody."""
CLASSES = (WHOLE_GPU_CLASS, MIG_CLASS)
PEOPLE_GROUP = "system:serviceaccounts:gpu-portal-people"
GROUPS_OF_PEOPLE = (PEOPLE_GROUP, "system:serviceaccounts", "system:authenticated")
APPLY = "kubectl apply --server-side -k deploy/cluster"
KUEUE_MANUAL = "change Kueue's ConfigMap kueue-manager-config and restart Kueue"

Check = Callable[[Gathered, Expected], Iterator[Finding]]


def examine(seen: Gathered, expected: Expected) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(seen, expected)]


def is_ready(findings: list[Finding]) -> bool:
    return not any(finding.status is Status.PROBLEM for finding in findings)


def _ok(check: str, found: str) -> Finding:
    return Finding(check, Status.OK, found)


def _problem(check: str, found: str, fix: str) -> Finding:
    return Finding(check, Status.PROBLEM, found, fix)


def _either(check: str, holds: bool, found: str, fix: str) -> Finding:
    return _ok(check, found) if holds else _problem(check, found, fix)


def _unread(check: str, why: Refused) -> Finding:
    return _problem(check, f"not read: {why}", f"{APPLY}, and use the token of service account gpu-portal/portal")


def kubernetes_version(seen: Gathered, _: Expected) -> Iterator[Finding]:
    name = "Kubernetes"
    if isinstance(seen.version, Refused):
        yield _unread(name, seen.version)
        return
    numbers = tuple(int(n) for n in re.findall(r"\d+", seen.version)[:3])
    lowest = ".".join(map(str, MIN_VERSION))
    yield _either(
        name,
        numbers >= MIN_VERSION,
        seen.version,
        f"upgrade to {lowest} or later (DRA with NVIDIA's driver needs it; tested with {TESTED})",
    )


def apis(seen: Gathered, _: Expected) -> Iterator[Finding]:
    if isinstance(seen.served, Refused):
        yield _unread("APIs", seen.served)
        return
    yield _served(
        seen.served, "Dynamic Resource Allocation", "resource.k8s.io/v1", "upgrade to Kubernetes 1.34 or later"
    )
    for plural in GUARD_KINDS:
        api = f"admissionregistration.k8s.io/v1/{plural}"
        yield _served(seen.served, plural, api, f"the guards need it: upgrade to Kubernetes {TESTED}")


def _served(served: Collection[str], check: str, api: str, fix: str) -> Finding:
    return _either(check, api in served, f"{api} is {'served' if api in served else 'not served'}", fix)


def definitions(seen: Gathered, _: Expected) -> Iterator[Finding]:
    yield _definition(seen, "gpuprojects.gpu-portal.io", "v1", APPLY)
    for plural in KUEUE_KINDS:
        fix = "install Kueue 0.19 or later: https://kueue.sigs.k8s.io/docs/installation/"
        yield _definition(seen, f"{plural}.kueue.x-k8s.io", KUEUE_VERSION, fix)


def _definition(seen: Gathered, name: str, version: str, fix: str) -> Finding:
    versions = seen.crds.get(name, ())
    if isinstance(versions, Refused):
        return _unread(name, versions)
    found = f"serves {', '.join(sorted(versions))}" if versions else "missing"
    return _either(name, version in versions, found, fix)


def visibility(seen: Gathered, _: Expected) -> Iterator[Finding]:
    """Without it places in the queue are the portal's own count."""
    name = "Kueue's visibility API"
    fix = "enable Kueue's visibilityServer; without it, places in the queue leave out tenants' own Jobs"
    yield Finding(name, Status.ADVICE, seen.visibility, fix) if seen.visibility else _ok(name, "answers")


def kueue_configuration(seen: Gathered, expected: Expected) -> Iterator[Finding]:
    name = "Kueue's configuration"
    if isinstance(seen.kueue, Refused):
        gates = ", ".join(KUEUE_GATES_OFF)
        yield Finding(
            name,
            Status.ADVICE,
            f"not read: {seen.kueue}",
            f"give it by --kueue-config FILE, or see yourself: gates {gates} false, "
            f"{' and '.join(KUEUE_GATES_ON)} true; no framework pod; "
            f"resources.quotaCheckStrategy BlockUndeclared, excludeResourcePrefixes {', '.join(KUEUE_EXCLUDED)}; "
            f"waitForPodsReady.timeout above {expected.start_deadline_s} s, "
            "with recoveryTimeout and requeuingStrategy.backoffLimitCount",
        )
        return
    switches = seen.kueue.get("featureGates") or {}
    on = [gate for gate in KUEUE_GATES_OFF if switches.get(gate) is not False]
    yield _either(
        "Kueue's DRA gates", not on, f"on: {', '.join(on)}" if on else "off", f"{KUEUE_MANUAL}: set them false"
    )
    off = [gate for gate in KUEUE_GATES_ON if switches.get(gate) is not True]
    shown = f"off: {', '.join(off)}" if off else "on"
    yield _either("Kueue's observability gates", not off, shown, f"{KUEUE_MANUAL}: set them true")
    frameworks = (seen.kueue.get("integrations") or {}).get("frameworks") or []
    pod = "pod" in frameworks
    yield _either("Kueue's pod integration", not pod, "on" if pod else "off", f"{KUEUE_MANUAL}: remove framework pod")
    resources = seen.kueue.get("resources") or {}
    strategy = resources.get("quotaCheckStrategy", "unset")
    yield _either(
        "Kueue's undeclared resources",
        strategy == "BlockUndeclared",
        str(strategy),
        f"{KUEUE_MANUAL}: resources.quotaCheckStrategy: BlockUndeclared, or a GPU not yet discovered is free",
    )
    prefixes = resources.get("excludeResourcePrefixes") or []
    missing = [prefix for prefix in KUEUE_EXCLUDED if prefix not in prefixes]
    yield _either(
        "Kueue's excluded resources",
        not missing,
        f"counts {', '.join(missing)}" if missing else ", ".join(prefixes),
        f"{KUEUE_MANUAL}: add them to resources.excludeResourcePrefixes",
    )
    yield from _pods_ready(seen.kueue.get("waitForPodsReady") or {}, expected)


def _pods_ready(wait: Mapping[str, Any], expected: Expected) -> Iterator[Finding]:
    """How long Kueue keeps quota for pods that are not ready, and how often it gives it to them again."""
    timeout = wait.get("timeout", "")
    yield _either(
        "Kueue's waitForPodsReady",
        _seconds(timeout) > expected.start_deadline_s,
        timeout or "off",
        f"{KUEUE_MANUAL}: waitForPodsReady.timeout: 300s, above the portal's {expected.start_deadline_s} s",
    )
    recovery = wait.get("recoveryTimeout", timeout)
    yield _either(
        "Kueue's recovery timeout",
        _seconds(recovery) > 0,
        recovery or "off",
        f"{KUEUE_MANUAL}: waitForPodsReady.recoveryTimeout: 300s, or a Job whose pods are lost keeps its quota",
    )
    retries = (wait.get("requeuingStrategy") or {}).get("backoffLimitCount")
    yield _either(
        "Kueue's requeuing limit",
        retries is not None,
        "none" if retries is None else str(retries),
        f"{KUEUE_MANUAL}: waitForPodsReady.requeuingStrategy.backoffLimitCount: 5, or a Job whose pods never start "
        "reserves quota again and again",
    )


def _seconds(duration: str) -> float:
    """A Go duration of hours, minutes and seconds."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([\d.]+)(h|m|s)(?![a-z])", duration))


def guards(seen: Gathered, expected: Expected) -> Iterator[Finding]:
    name = "Guards"
    if isinstance(seen.guards, Refused):
        yield _unread(name, seen.guards)
        return
    there = {(guard.kind, guard.name): guard for guard in seen.guards}
    wrong = []
    for guard in expected.guards:
        found = there.get((guard.kind, guard.name))
        if found is None:
            wrong.append(f"{guard.kind} {guard.name} is missing")
        elif found.rules != guard.rules:
            wrong.append(f"{guard.kind} {guard.name} is of another release")
        elif guard.fails_closed and not found.fails_closed:
            wrong.append(f"{guard.kind} {guard.name} lets pass what it should refuse")
    complete = f"{len(expected.guards)} policies and bindings are in place"
    yield _either(name, not wrong, "; ".join(wrong) or complete, APPLY)
    shipped = {(guard.kind, guard.name) for guard in expected.guards}
    former = sorted(key for key in there if key[1].startswith(GUARD_PREFIX) and key not in shipped)
    deletions = "; ".join(f"kubectl delete {kind.lower()} {guard}" for kind, guard in former)
    yield _either(
        "Guards of earlier releases", not former, ", ".join(guard for _, guard in former) or "none", deletions
    )


def priority_classes(seen: Gathered, _: Expected) -> Iterator[Finding]:
    for priority_class, found in seen.priority_classes.items():
        name = f"PriorityClass {priority_class}"
        if isinstance(found, Refused):
            yield _unread(name, found)
            continue
        said = None if found is None else (found.get("value"), found.get("preemptionPolicy"))
        words = "missing" if said is None else f"value {said[0]}, {said[1]}"
        yield _either(name, said == (PRIORITIES[priority_class], "Never"), words, APPLY)


def tenant_roles(seen: Gathered, _: Expected) -> Iterator[Finding]:
    for role, there in seen.roles.items():
        name = f"ClusterRole {role}"
        if isinstance(there, Refused):
            yield _unread(name, there)
        else:
            yield _either(name, there, "there" if there else "missing", APPLY)


def fairness(seen: Gathered, _: Expected) -> Iterator[Finding]:
    """Of API Priority and Fairness: the first FlowSchema that has people's requests decides their level."""
    name = "Tenants' priority level"
    if isinstance(seen.flows, Refused):
        yield _unread(name, seen.flows)
        return
    theirs = [flow for flow in seen.flows if any(group in GROUPS_OF_PEOPLE for group in flow.groups)]
    first = min(theirs, key=lambda flow: (flow.precedence, flow.name), default=None)
    if first is None:
        yield _problem(name, "no FlowSchema has their requests", APPLY)
        return
    others = sorted(flow.name for flow in seen.flows if flow.level == first.level and flow.name != first.name)
    shared = first.groups != (PEOPLE_GROUP,) or bool(others)
    words = f"FlowSchema {first.name} puts them into {first.level}"
    with_others = f", with requests of {', '.join(others) or ', '.join(first.groups)}" if shared else ", their own"
    fix = f"{APPLY}, and give no FlowSchema for {', '.join(GROUPS_OF_PEOPLE[1:])} a lower matchingPrecedence"
    yield _either(name, not shared, words + with_others, fix)


def etcd_size(seen: Gathered, expected: Expected) -> Iterator[Finding]:
    name = "etcd"
    if isinstance(seen.store_bytes, Refused):
        yield _unread(name, seen.store_bytes)
        return
    store = Store(expected.etcd_quota_bytes, seen.store_bytes)
    if store.size_bytes is None:
        fix = "watch etcd's own etcd_mvcc_db_total_size_in_bytes against its quota; the portal cannot"
        yield Finding(name, Status.ADVICE, "the API server does not tell its size", fix)
        return
    statuses = {Level.NORMAL: Status.OK, Level.HIGH: Status.ADVICE}
    status = statuses.get(store.level, Status.PROBLEM)
    fix = f"{DISARM if store.level is Level.FULL else FREE}. {_largest(seen.stored_kib)}"
    yield Finding(name, status, store.summary, "" if status is Status.OK else fix)


def _largest(stored_kib: Mapping[str, int]) -> str:
    """Name the projects whose objects may take most."""
    most = sorted(stored_kib.items(), key=lambda item: (-item[1], item[0]))[:3]
    told = ", ".join(f"{namespace} (at most {kib // 1024} MiB)" for namespace, kib in most if kib)
    return f"Most objects: {told}" if told else LARGEST


def etcd_quota(seen: Gathered, expected: Expected) -> Iterator[Finding]:
    """The operator's settings against each other: the API server does not tell etcd's quota."""
    name = "etcd's quota"
    quota, project = expected.etcd_quota_bytes, expected.project_store_mib * 1024**2
    projects = quota // max(1, project)
    found = f"ETCD_QUOTA_BYTES is {amount(quota)}: {projects} projects at their bound of {amount(project)} fill it"
    if projects < 1:
        fix = (
            "lower PROJECT_STORE_MIB, or raise etcd's --quota-backend-bytes and ETCD_QUOTA_BYTES: one project fills it"
        )
        yield _problem(name, found, fix)
    elif quota > SUGGESTED_MAX:
        fix = "etcd suggests 8 GiB at most; give events an etcd of their own (--etcd-servers-overrides) instead"
        yield Finding(name, Status.ADVICE, found, fix)
    else:
        yield _ok(name, found)


def device_classes(seen: Gathered, _: Expected) -> Iterator[Finding]:
    name = "DeviceClasses"
    if isinstance(seen.classes, Refused):
        yield _unread(name, seen.classes)
    elif not seen.uses_dra:
        yield _ok(name, f"no device is published by {DRA_DRIVER}, so none is needed")
    else:
        missing = [c for c in CLASSES if c not in seen.classes]
        fix = "install NVIDIA's DRA driver with its chart, which brings them"
        yield _either(name, not missing, f"missing: {', '.join(missing)}" if missing else ", ".join(CLASSES), fix)


def rights(seen: Gathered, expected: Expected) -> Iterator[Finding]:
    lacking = [str(right) for right in expected.needed if not seen.rights.get(right, False)]
    found = f"may not {'; '.join(lacking)}" if lacking else f"all {len(expected.needed)} that are needed"
    yield _either("Our rights", not lacking, found, f"{APPLY}, and use the token of service account gpu-portal/portal")
    beyond = [str(right) for right in expected.unwanted if seen.rights.get(right, False)]
    fix = "use the token of service account gpu-portal/portal and nothing else, and bind no other role to it"
    yield _either("Rights we should not have", not beyond, "may " + "; ".join(beyond) if beyond else "none", fix)


def gpu_nodes(seen: Gathered, _: Expected) -> Iterator[Finding]:
    if isinstance(seen.nodes, Refused):
        yield _unread("GPU nodes", seen.nodes)
        return
    for node, problem in sorted(seen.nodes.items()):
        if problem:
            yield Finding(f"Node {node}", Status.ADVICE, problem, "as it says")
    found = ", ".join(sorted(seen.flavors)) or f"none on {len(seen.nodes)} GPU nodes"
    fix = "install the GPU Operator (device plugin and GPU feature discovery, or DRA driver) and taint the GPU nodes"
    yield _either("GPU flavors", bool(seen.flavors), found, fix)


CHECKS: tuple[Check, ...] = (
    kubernetes_version,
    apis,
    definitions,
    visibility,
    kueue_configuration,
    guards,
    priority_classes,
    tenant_roles,
    fairness,
    etcd_size,
    etcd_quota,
    device_classes,
    rights,
    gpu_nodes,
)
