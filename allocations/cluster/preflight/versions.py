"""Checks of what the cluster's version of Kubernetes brings, and of Kueue's version. Pure."""

import re
from collections.abc import Iterator

from allocations.cluster.capabilities import capabilities
from allocations.cluster.preflight.findings import ok, ok_or_problem
from allocations.cluster.preflight.types import ClusterFacts, Document, Finding, ReadError, Requirements, Status

KUEUE_TESTED = (0, 19)
WEBHOOK = "gpu-portal-webhook"
"""Name of the MutatingWebhookConfiguration of deploy/cluster/webhook."""
APPLY_WEBHOOK = "kubectl apply --server-side -k deploy/cluster/webhook, as docs/operate/versions.md says"


def features(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Report what the cluster can do, and which version of Kubernetes brings what it cannot."""
    if isinstance(facts.version, ReadError) or isinstance(facts.served, ReadError):
        return  # said by other checks
    can = capabilities(facts.version, facts.served, facts.features)
    yield _feature(
        "Division of GPUs on demand",
        can.partitionable_devices,
        "1.36 brings it (feature gate DRAPartitionableDevices). Until then the DRA driver publishes whole GPUs, and "
        "MIG slices of a fixed layout",
    )
    yield _feature(
        "DRA for nvidia.com/gpu", can.extended_resources, "1.36 brings it (feature gate DRAExtendedResource)"
    )
    yield _feature(
        "Drain of a device by rule",
        can.device_taint_rules,
        "1.37 brings it (DeviceTaintRule). Until then cordon the node",
    )
    kinds = ", ".join(can.gang_kinds)
    yield ok("Gangs of the scheduler", f"{kinds}: refused in projects" if kinds else "not served")


def _feature(check: str, is_there: bool, otherwise: str) -> Finding:
    return ok(check, "there" if is_there else f"not there; Kubernetes {otherwise}")


def mutation(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that the API server evaluates MutatingAdmissionPolicies, or the portal's webhook does."""
    name = "Mutation"
    if isinstance(facts.version, ReadError) or isinstance(facts.served, ReadError):
        return
    served = capabilities(facts.version, facts.served, facts.features).mutating_policies
    if isinstance(facts.webhook, ReadError):
        found, wrong = f"the webhook was not read: {facts.webhook}", not served
    elif facts.webhook is None:
        found, wrong = "by policies" if served else "neither MutatingAdmissionPolicy v1 nor the webhook", not served
    else:
        hooks = facts.webhook.get("webhooks") or []
        wrong = not hooks or any(hook.get("failurePolicy", "Fail") != "Fail" for hook in hooks)
        found = "the webhook lets pass what it cannot change" if wrong else "by webhook"
        if served and not wrong:
            found = "by policies, and by webhook, which can be deleted"
    yield ok_or_problem(name, not wrong, found, f"{APPLY_WEBHOOK}; Kubernetes 1.36 needs none")


def kueue_version(facts: ClusterFacts, _: Requirements) -> Iterator[Finding]:
    """Check that Kueue is the version that is tested: an older one is refused, a newer one is advice.

    It is the tag of the image of Kueue's pod. Where there is none, Kueue's definitions tell whether it is newer: 0.20
    serves no v1beta1.
    """
    name = "Kueue"
    tested = ".".join(map(str, KUEUE_TESTED))
    if tag := _tag(facts.kueue_pod):
        major, minor = re.findall(r"\d+", tag)[:2]
        number, found = (int(major), int(minor)), tag
    else:
        versions = facts.crds.get("workloads.kueue.x-k8s.io", ())
        if isinstance(versions, ReadError) or "v1beta2" not in versions:
            return  # said by other checks
        is_new = "v1beta1" not in versions
        number = (KUEUE_TESTED[0], KUEUE_TESTED[1] + is_new)
        found = f"version not told by its pod; its definitions are of 0.{'20 or later' if is_new else '19 or earlier'}"
    if number > KUEUE_TESTED:
        fix = f"use {tested}, or try it first: {tested} is tested, and this version was not tried"
        yield Finding(name, Status.ADVICE, found, fix)
    else:
        yield ok_or_problem(name, number == KUEUE_TESTED, found, f"upgrade Kueue to {tested}")


def _tag(pod: Document | ReadError | None) -> str:
    """Return the version in the tag of the container's image, such as v0.19.2; "" if there is none."""
    image = "" if pod is None or isinstance(pod, ReadError) else str(pod.get("image", ""))
    match = re.search(r":(v\d+\.\d+[^@]*)", image)
    return match[1] if match else ""
