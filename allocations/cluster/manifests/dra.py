"""Slices held by Dynamic Resource Allocation: one named ResourceClaim, and a tiny pod that keeps it allocated.

A claim is no reservation: kube-controller-manager clears its allocation when the last pod that uses it goes. The
holder is that pod. Tenants' pods name the same claim, hence get the very same devices. All slices are requests of
one claim, so they are on one node.
"""

from datetime import datetime

from allocations.cluster import names
from allocations.cluster.manifests import lease
from allocations.reconcile.facts import Manifest, Ref, Request, Slice, View


def claim_ref(request: Request) -> Ref:
    return Ref("ResourceClaim", request.namespace, names.claim(request.name))


def holder_ref(request: Request) -> Ref:
    return Ref("Pod", request.namespace, names.holder(request.name))


def claim(request: Request) -> Manifest:
    """resource.k8s.io/v1: one request ``slice-<n>`` per slice, each exactly one device of the offering."""
    exactly: dict[str, object] = {
        "deviceClassName": request.device_class,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    if request.selectors:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in request.selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": names.claim(request.name),
            "namespace": request.namespace,
            "labels": lease.labels(request),
        },
        "spec": {"devices": {"requests": [{"name": f"slice-{n}", "exactly": exactly} for n in range(request.count)]}},
    }


def holder(request: Request) -> Manifest:
    """Fits Pod Security ``restricted``; above every tenant class and never preempting (class gpu-portal-holder)."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.holder(request.name),
            "namespace": request.namespace,
            "labels": {**lease.labels(request), names.HOLDER: "true"},
        },
        "spec": {
            "priorityClassName": names.HOLDER_CLASS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Always",
            "nodeSelector": dict(request.node_selector),
            "tolerations": [dict(t) for t in request.tolerations],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resourceClaims": [{"name": "gpu-portal", "resourceClaimName": names.claim(request.name)}],
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


def objects(request: Request, view: View) -> list[Manifest]:
    """What holds the slices. While a claim is being deleted only the claim is wanted: its pods must go first."""
    if is_claim_deleted(request, view):
        return [claim(request)]
    return [claim(request), holder(request)]


def leftovers(request: Request) -> list[list[Ref]]:
    """What must go, group after group, once the tenants' pods are gone."""
    return [[holder_ref(request)], [claim_ref(request)]]


def is_claim_deleted(request: Request, view: View) -> bool:
    seen = view.get(claim_ref(request))
    return seen is not None and seen.deleting


def occupied(request: Request, view: View) -> tuple[Slice, ...]:
    """The devices that the claim has, whoever uses it: charged until these are gone."""
    seen = view.get(claim_ref(request))
    if seen is None:
        return ()
    holder_seen = view.get(holder_ref(request))
    holder_uid = holder_seen.uid if holder_seen else ""
    at = seen.facts.get("allocated_at")
    return tuple(
        Slice(
            slot=f"{device['pool']}/{device['device']}",
            node=device["pool"],
            device=device["device"],
            identity=f"{seen.uid}/{holder_uid}",
            since=datetime.fromisoformat(at) if at else None,
            evidence=seen.ref,
        )
        for device in seen.facts.get("devices", ())
    )


def held(request: Request, view: View) -> tuple[Slice, ...]:
    """Held = the claim is allocated and the holder runs."""
    holder_seen = view.get(holder_ref(request))
    if holder_seen is None or holder_seen.deleting or holder_seen.facts.get("phase") != "Running":
        return ()
    return occupied(request, view)


def blocked_by(request: Request, view: View) -> str:
    """Why the holder does not start, in the scheduler's words."""
    holder_seen = view.get(holder_ref(request))
    return str(holder_seen.facts.get("unschedulable", "")) if holder_seen else ""


def guard(request: Request) -> dict[str, object]:
    """The allocation's entry in its GpuProject: how the policies dress a pod that carries its label."""
    return {
        "mode": "dra",
        "claim": names.claim(request.name),
        "resource": request.device_class,
        "count": request.count,
        "priorityClassName": names.hold_class(request.flavor),
        "nodeSelector": dict(request.node_selector),
        "tolerations": [dict(t) for t in request.tolerations],
    }


def quota(request: Request) -> dict[str, int]:
    """No hold quota: the claim itself is the limit."""
    return {}
