"""Slices held by Dynamic Resource Allocation: named ResourceClaims, and a tiny pod that keeps each allocated.

A claim is no reservation: kube-controller-manager clears its allocation when the last pod that uses it goes. The
holder is that pod. Tenants' pods name the same claim, hence get the very same devices. What is in one claim is on
one node: all slices are, as requests of one claim, unless the request lets them spread; then each has its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from allocations.cluster import names
from allocations.cluster.manifests import claim_spec, lease, own_claim
from allocations.domain.objects import Manifest, ObservedObject, Ref, ResolvedSpec, Slice, Snapshot

CLIQUE = "nvidia.com/gpu.clique"
"""Node label: the NVLink domain and partition that a node belongs to (GPU feature discovery)."""


class Part(NamedTuple):
    """What is held on one node: a claim with one request per slice, and its holder."""

    claim: Ref
    holder: Ref
    slices: Sequence[int]


def parts(request: ResolvedSpec) -> list[Part]:
    claims = names.claims(request.name, request.slices, request.constraints.spread)
    if request.constraints.spread:
        return [_part(request, claim, [n]) for n, claim in enumerate(claims)]
    return [_part(request, claims[0], range(request.slices))]


def _part(request: ResolvedSpec, claim: str, slices: Sequence[int]) -> Part:
    return Part(
        Ref("ResourceClaim", request.namespace, claim), Ref("Pod", request.namespace, names.holder(claim)), slices
    )


def claim(request: ResolvedSpec, part: Part) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": part.claim.name,
            "namespace": request.namespace,
            "labels": lease.labels(request),
        },
        "spec": claim_spec.build(request, part.slices) if request.claim_spec is None else dict(request.claim_spec),
    }


def holder(request: ResolvedSpec, part: Part) -> Manifest:
    """Fits Pod Security ``restricted``; above every tenant class and never preempting (class gpu-portal-holder)."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": part.holder.name,
            "namespace": request.namespace,
            "labels": {**lease.labels(request), names.HOLDER: "true"},
        },
        "spec": {
            "priorityClassName": names.HOLDER_CLASS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Always",
            "nodeSelector": _node_selector(request),
            "tolerations": [dict(t) for t in request.tolerations],
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


def _node_selector(request: ResolvedSpec) -> dict[str, str]:
    """The flavor's nodes, and of these the ones of one NVLink clique where the slices are to share it. Where none has
    room, its name is empty and so is the selection: they are never apart."""
    return {**request.node_selector, **({CLIQUE: request.clique} if request.constraints.same_clique else {})}


def objects(request: ResolvedSpec, snapshot: Snapshot) -> list[Manifest]:
    """What holds the slices. While a claim is being deleted it is wanted without its holder: its pods go first.

    A claim cannot be steered anew: the one that is steered otherwise goes, with its holder, and is made again after."""
    wanted: list[Manifest] = []
    for part in parts(request):
        if _has_other_affinity(request, part, snapshot):
            continue
        wanted.append(claim(request, part))
        if not _is_deleting(part.claim, snapshot):
            wanted.append(holder(request, part))
    return wanted


def leftovers(request: ResolvedSpec) -> list[list[Ref]]:
    """What must go, group after group, once the tenants' pods are gone."""
    return [[part.holder for part in parts(request)], [part.claim for part in parts(request)]]


def outdated(request: ResolvedSpec, snapshot: Snapshot) -> list[list[Ref]]:
    """Of these, what must go while the slices are still wanted: claims that are steered otherwise."""
    old = [part for part in parts(request) if _has_other_affinity(request, part, snapshot)]
    return [[part.holder for part in old], [part.claim for part in old]] if old else []


def _has_other_affinity(request: ResolvedSpec, part: Part, snapshot: Snapshot) -> bool:
    """A claim that has devices is left as it is: what is held is never taken for a better place."""
    seen = snapshot.get(part.claim)
    if seen is None or request.kind != "mig" or seen.facts.get("devices"):
        return False
    there = cards_requested(seen)
    return any(there) and there != tuple(request.cards[n] if request.cards else "" for n in part.slices)


def cards_requested(claim_seen: ObservedObject) -> tuple[str, ...]:
    """The card of each of its requests, "" for one that the scheduler chooses."""
    return tuple(claim_seen.facts.get("cards", ()))


def claims(request: ResolvedSpec) -> list[Ref]:
    """What names its devices."""
    return [part.claim for part in parts(request)]


def requested_cards(request: ResolvedSpec, snapshot: Snapshot) -> tuple[str, ...]:
    """The card of each slice, "" where the scheduler chooses or the claim is not there."""
    return tuple(card for part in parts(request) for card in _requested_cards(part, snapshot))


def _requested_cards(part: Part, snapshot: Snapshot) -> tuple[str, ...]:
    seen = snapshot.get(part.claim)
    return cards_requested(seen) if seen else ("",) * len(part.slices)


def is_claim_deleted(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    return any(
        _is_deleting(part.claim, snapshot) and not _has_other_affinity(request, part, snapshot)
        for part in parts(request)
    )


def finds_no_device(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Whether the scheduler says so of a holder whose claim was seen."""
    holders = [snapshot.get(part.holder) for part in parts(request) if snapshot.get(part.claim)]
    return any(h is not None and not h.deleting and h.facts.get("unschedulable") for h in holders)


def _is_deleting(ref: Ref, snapshot: Snapshot) -> bool:
    seen = snapshot.get(ref)
    return seen is not None and seen.deleting


def occupied(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """The devices that the claims have, whoever uses them: charged until these are gone."""
    return tuple(found for part in parts(request) for found in _devices(part, snapshot))


def _devices(part: Part, snapshot: Snapshot) -> list[Slice]:
    seen, holder_seen = snapshot.get(part.claim), snapshot.get(part.holder)
    if seen is None:
        return []
    holder_uid = holder_seen.uid if holder_seen else ""
    # Held needs both, so it began no earlier than the later of them.
    times = [seen.facts.get("allocated_at"), holder_seen.facts.get("ready_at") if holder_seen else ""]
    since = max((datetime.fromisoformat(at) for at in times if at), default=None)
    return [
        Slice(
            slot="/".join([device["pool"], device["device"], *([device["share"]] if device.get("share") else [])]),
            node=device["pool"],
            device=device["device"],
            consumed=device.get("consumed", {}),
            identity=f"{seen.uid}/{holder_uid}",
            since=since,
            evidence=seen.ref,
            is_charged=is_charged,
        )
        for listed, is_charged in (("devices", True), ("admin_devices", False))
        for device in seen.facts.get(listed, ())
    ]


def held(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Held = every claim is allocated and every holder runs; until then nothing is, so all began with the last."""
    if not all(_runs(part.holder, snapshot) and _devices(part, snapshot) for part in parts(request)):
        return ()
    found = occupied(request, snapshot)
    since = max((s.since for s in found if s.since), default=None)
    return tuple(replace(s, since=since) for s in found)


def _runs(ref: Ref, snapshot: Snapshot) -> bool:
    seen = snapshot.get(ref)
    return seen is not None and not seen.deleting and seen.facts.get("phase") == "Running"


def blocked_by(request: ResolvedSpec, snapshot: Snapshot) -> str:
    """Why a holder does not start: in the scheduler's words, or the node that does not run it."""
    return next((words for part in parts(request) if (words := _blocks(snapshot.get(part.holder)))), "")


def _blocks(holder_seen: ObservedObject | None) -> str:
    if holder_seen is None or holder_seen.facts.get("phase") == "Running":
        return ""
    node = holder_seen.facts.get("node")
    return f"node {node} was chosen and does not run it" if node else str(holder_seen.facts.get("unschedulable", ""))


def guard_entry(request: ResolvedSpec) -> dict[str, object]:
    """The allocation's entry in its GpuProject: how the policies dress a pod that carries its label."""
    claims = [part.claim.name for part in parts(request)]
    return {
        "mode": "dra",
        **({"claims": claims} if request.constraints.spread else {"claim": claims[0]}),
        "resource": request.device_class,
        **_addressed(request),
        **({"share": request.pod_share.amounts} if request.node_share else {}),
        "priorityClassName": names.hold_slot(request.number),
        "nodeSelector": dict(request.node_selector),
        "tolerations": [dict(t) for t in request.tolerations],
    }


def _addressed(request: ResolvedSpec) -> dict[str, object]:
    """What a pod's annotation can pick by number: the slices; of a person's own claim, its requests."""
    if request.claim_spec is None:
        return {"count": request.slices}
    named = own_claim.requests(request.claim_spec)
    return {"count": len(named), "requests": named}


def annotations(request: ResolvedSpec) -> dict[str, str]:
    """What a pod says beside the label: where slices are spread, which of them it gets."""
    return {names.POD_SLICES: "0"} if request.constraints.spread else {}


def quota(request: ResolvedSpec) -> dict[str, int]:
    """None: the claims themselves are the limit."""
    return {}
