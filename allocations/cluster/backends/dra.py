"""Holds slices by Dynamic Resource Allocation: ResourceClaims, each kept allocated by a small holder pod.

A claim is no reservation: kube-controller-manager deallocates it when the last pod that uses it is deleted. The holder
is that pod. Tenants' pods refer to the same claim, so they get the same devices. The devices of a claim are on one
node: an allocation has one claim with a request for each slice, or one claim for each slice if they may spread.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from allocations.cluster import names
from allocations.cluster.manifests import claim_spec, custom_claim, lease
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec, Slice, Snapshot
from allocations.domain.observed_facts import claim_facts, pod_facts
from quotas.catalog.nvidia import CLIQUE_LABEL


class Part(NamedTuple):
    """The part of an allocation on one node: a claim with one request per slice, and its holder."""

    claim: Ref
    holder: Ref
    slices: Sequence[int]


def parts(spec: ResolvedSpec) -> list[Part]:
    """Return the allocation's claims with their holders: one, or one for each slice if they spread."""
    claims = names.claims(spec.name, spec.slices, spec.constraints.spread)
    if spec.constraints.spread:
        return [_part(spec, claim, [n]) for n, claim in enumerate(claims)]
    return [_part(spec, claims[0], range(spec.slices))]


def _part(spec: ResolvedSpec, claim: str, slices: Sequence[int]) -> Part:
    return Part(Ref("ResourceClaim", spec.namespace, claim), Ref("Pod", spec.namespace, names.holder(claim)), slices)


def claim(spec: ResolvedSpec, part: Part) -> Manifest:
    """Return the ResourceClaim of a part."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": part.claim.name,
            "namespace": spec.namespace,
            "labels": lease.labels(spec),
        },
        "spec": claim_spec.build(spec, part.slices) if spec.claim_spec is None else dict(spec.claim_spec),
    }


def holder(spec: ResolvedSpec, part: Part) -> Manifest:
    """Return the holder pod of a part.

    It complies with Pod Security ``restricted``. Its PriorityClass gpu-portal-holder is above all classes of
    tenants, and never preempts.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": part.holder.name,
            "namespace": spec.namespace,
            "labels": {**lease.labels(spec), names.HOLDER: "true"},
        },
        "spec": {
            "priorityClassName": names.HOLDER_CLASS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Always",
            "nodeSelector": _node_selector(spec),
            "tolerations": [dict(t) for t in spec.tolerations],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resourceClaims": [{"name": "gpu-portal", "resourceClaimName": part.claim.name}],
            "containers": [
                {
                    "name": "holder",
                    "image": lease.PAUSE,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "8Mi"},
                        "limits": {"cpu": "10m", "memory": "16Mi"},
                        "claims": [{"name": "gpu-portal"}],
                    },
                }
            ],
        },
    }


def _node_selector(spec: ResolvedSpec) -> dict[str, str]:
    """Return the labels of the flavor's nodes, and of the NVLink clique if all slices must be in one.

    If no clique has room, its name is "", which matches no node, so the slices are never split.
    """
    return {**spec.node_selector, **({CLIQUE_LABEL: spec.clique} if spec.constraints.same_clique else {})}


def objects(spec: ResolvedSpec, snapshot: Snapshot) -> list[Manifest]:
    """Return the claims and holders that should exist.

    A claim that is being deleted has no holder, since its pods must end first. The spec of a claim is immutable, so a
    claim that selects other GPUs than the affinity is left out until it is deleted, with its holder.
    """
    manifests: list[Manifest] = []
    for part in parts(spec):
        if _has_other_affinity(spec, part, snapshot):
            continue
        manifests.append(claim(spec, part))
        if not _is_deleting(part.claim, snapshot):
            manifests.append(holder(spec, part))
    return manifests


def leftovers(spec: ResolvedSpec) -> list[list[Ref]]:
    """Return what to delete once the tenants' pods are gone, in groups: holders, then claims."""
    return [[part.holder for part in parts(spec)], [part.claim for part in parts(spec)]]


def outdated(spec: ResolvedSpec, snapshot: Snapshot) -> list[list[Ref]]:
    """Return the claims to recreate because they select other GPUs than the affinity, after their holders."""
    old = [part for part in parts(spec) if _has_other_affinity(spec, part, snapshot)]
    return [[part.holder for part in old], [part.claim for part in old]] if old else []


def _has_other_affinity(spec: ResolvedSpec, part: Part, snapshot: Snapshot) -> bool:
    """Return whether a claim without devices selects other GPUs; one with devices is never moved."""
    observed = snapshot.get(part.claim)
    if observed is None or spec.claim_spec is not None or claim_facts(observed).get("devices"):
        return False
    uuids = gpus_requested(observed)
    return any(uuids) and uuids != tuple(spec.gpu_uuids[n] if spec.gpu_uuids else "" for n in part.slices)


def gpus_requested(observed_claim: ObservedObject) -> tuple[str, ...]:
    """Return the UUID of the GPU that each request of the claim selects; "" if it selects none."""
    return tuple(claim_facts(observed_claim).get("cards", ()))


def claims(spec: ResolvedSpec) -> list[Ref]:
    """Return the ResourceClaims to which the allocation's devices are allocated."""
    return [part.claim for part in parts(spec)]


def requested_gpus(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the UUID of the GPU that each slice's request selects; "" if it selects none or the claim is absent."""
    return tuple(gpu for part in parts(spec) for gpu in _requested_gpus(part, snapshot))


def _requested_gpus(part: Part, snapshot: Snapshot) -> tuple[str, ...]:
    observed = snapshot.get(part.claim)
    return gpus_requested(observed) if observed else ("",) * len(part.slices)


def is_claim_deleted(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether somebody other than the portal is deleting one of the claims."""
    return any(
        _is_deleting(part.claim, snapshot) and not _has_other_affinity(spec, part, snapshot) for part in parts(spec)
    )


def finds_no_device(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the scheduler reports a holder, whose claim exists, as unschedulable."""
    holders = [snapshot.get(part.holder) for part in parts(spec) if snapshot.get(part.claim)]
    return any(h is not None and not h.deleting and pod_facts(h).get("unschedulable") for h in holders)


def _is_deleting(ref: Ref, snapshot: Snapshot) -> bool:
    observed = snapshot.get(ref)
    return observed is not None and observed.deleting


def occupied(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the devices allocated to the claims, which are charged as long as they are allocated."""
    return tuple(device for part in parts(spec) for device in _devices(part, snapshot))


def _devices(part: Part, snapshot: Snapshot) -> list[Slice]:
    observed_claim, observed_holder = snapshot.get(part.claim), snapshot.get(part.holder)
    if observed_claim is None:
        return []
    holder_uid = observed_holder.uid if observed_holder else ""
    # A hold needs both, so it begins at the later time.
    facts = claim_facts(observed_claim)
    times = [facts.get("allocated_at"), pod_facts(observed_holder).get("ready_at")]
    since = max((datetime.fromisoformat(at) for at in times if at), default=None)
    return [
        Slice(
            slot="/".join([device["pool"], device["device"], *([device["share"]] if device.get("share") else [])]),
            node=device["pool"],
            device=device["device"],
            consumed=device.get("consumed", {}),
            identity=f"{observed_claim.uid}/{holder_uid}",
            since=since,
            evidence=observed_claim.ref,
            is_charged=is_charged,
        )
        for devices, is_charged in ((facts.get("devices", ()), True), (facts.get("admin_devices", ()), False))
        for device in devices
    ]


def held(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the held slices once every claim is allocated and every holder runs, all since the last of them did."""
    if not all(_is_running(part.holder, snapshot) and _devices(part, snapshot) for part in parts(spec)):
        return ()
    slices = occupied(spec, snapshot)
    since = max((s.since for s in slices if s.since), default=None)
    return tuple(replace(s, since=since) for s in slices)


def _is_running(ref: Ref, snapshot: Snapshot) -> bool:
    observed = snapshot.get(ref)
    return observed is not None and not observed.deleting and pod_facts(observed).get("phase") == "Running"


def blocked_by(spec: ResolvedSpec, snapshot: Snapshot) -> str:
    """Return why a holder does not start: the scheduler's message, or the node that does not run it; "" if it runs."""
    return next((reason for part in parts(spec) if (reason := _blocked_by(snapshot.get(part.holder)))), "")


def _blocked_by(observed_holder: ObservedObject | None) -> str:
    if observed_holder is None or pod_facts(observed_holder).get("phase") == "Running":
        return ""
    facts = pod_facts(observed_holder)
    node = facts.get("node")
    return f"node {node} was chosen and does not run it" if node else facts.get("unschedulable", "")


def guard_entry(spec: ResolvedSpec) -> dict[str, object]:
    """Return the allocation's entry in its GpuProject, which the admission policies apply to its pods."""
    claims = [part.claim.name for part in parts(spec)]
    return {
        "mode": "dra",
        **({"claims": claims} if spec.constraints.spread else {"claim": claims[0]}),
        "resource": spec.device_class,
        **_request_names(spec),
        **({"share": spec.pod_share.amounts} if spec.node_share else {}),
        "priorityClassName": names.hold_slot(spec.number),
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [dict(t) for t in spec.tolerations],
    }


def _request_names(spec: ResolvedSpec) -> dict[str, object]:
    """Return what a pod can select by number in its annotation: slices, or the requests of a custom claim."""
    if spec.claim_spec is None:
        return {"count": spec.slices}
    requests = custom_claim.requests(spec.claim_spec)
    return {"count": len(requests), "requests": requests}


def annotations(spec: ResolvedSpec) -> dict[str, str]:
    """Return the annotations that a pod needs beside the label: the number of its slice if the slices spread."""
    return {names.POD_SLICES: "0"} if spec.constraints.spread else {}


def quota(spec: ResolvedSpec) -> dict[str, int]:
    """Return no slices: the claims themselves are the limit."""
    return {}
