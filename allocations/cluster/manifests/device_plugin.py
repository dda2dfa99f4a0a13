"""Slices held by the device plugin: a ResourceQuota per namespace and flavor, scoped to the flavor's hold class.

Kubernetes names no device here, so neither does the portal: a hold is a count on the flavor. The quota is shared
by all allocations of a project on that flavor and written by ``reconcile_project``; its annotation says which
allocation has how many of what, so that the quota's own status is the evidence for each of them.
"""

import json
from collections.abc import Mapping

from allocations.cluster import names
from allocations.cluster.manifests import lease
from allocations.reconcile.facts import Manifest, Ref, Request, Slice, View


def quota_ref(request: Request) -> Ref:
    return Ref("ResourceQuota", request.namespace, names.hold_quota(request.flavor))


def objects(request: Request, view: View) -> list[Manifest]:
    return []


def leftovers(request: Request) -> list[list[Ref]]:
    return []


def outdated(request: Request, view: View) -> list[list[Ref]]:
    return []


def is_claim_deleted(request: Request, view: View) -> bool:
    return False


def held(request: Request, view: View) -> tuple[Slice, ...]:
    """Held = the quota lists the allocation, and its ``status.hard`` has shown the slices since."""
    seen = view.get(quota_ref(request))
    if seen is None or seen.deleting or request.name not in seen.facts.get("shown", ()):
        return ()
    return occupied(request, view)


def occupied(request: Request, view: View) -> tuple[Slice, ...]:
    """As long as the quota lists the allocation, a pod of it could be let in: charged until it does not.

    The hold began no earlier than its admission, so that is the hold's identity and its earliest beginning.
    """
    seen = view.get(quota_ref(request))
    if seen is None or request.name not in seen.facts.get("slices", {}):
        return ()
    admitted = lease.read(view.get(lease.ref(request)))
    since = admitted.admitted_at if admitted else None
    identity = f"{request.id}/{seen.uid}/{since.isoformat() if since else ''}"
    return (Slice(slot=request.id, count=request.count, identity=identity, since=since, evidence=seen.ref),)


def blocked_by(request: Request, view: View) -> str:
    """Nothing can be: a quota is given or late. Kueue's own waitForPodsReady takes back what stays late."""
    return ""


def guard(request: Request) -> dict[str, object]:
    return {
        "mode": "device-plugin",
        "resource": request.resource,
        "count": request.count,
        **({"shared": True} if request.is_shared else {}),
        "priorityClassName": names.hold_class(request.flavor),
        "nodeSelector": dict(request.node_selector),
        "tolerations": [dict(t) for t in request.tolerations],
    }


def annotations(request: Request) -> dict[str, str]:
    """The label alone gives a pod the count; pods on several nodes may share it, with ``spread`` and without."""
    return {}


def quota(request: Request) -> dict[str, int]:
    """Slices by resource that this allocation adds to the hold quota of its flavor."""
    return {request.resource: request.count}


def hold_quota(
    namespace: str,
    flavor: str,
    labels: Mapping[str, str],
    holds: Mapping[str, Mapping[str, int]],
    resources: list[str],
) -> Manifest:
    """The quota of one flavor in one namespace. ``holds``: {allocation: {resource: slices}}; none means zero of all."""
    total = {resource: sum(h.get(resource, 0) for h in holds.values()) for resource in sorted(resources)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": names.hold_quota(flavor),
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": {names.SLICES: json.dumps(holds, sort_keys=True)},
        },
        "spec": {
            "hard": {f"requests.{resource}": str(amount) for resource, amount in total.items()},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": [names.hold_class(flavor)]}
                ]
            },
        },
    }
