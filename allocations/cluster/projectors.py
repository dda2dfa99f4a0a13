"""What is remembered of an object of each kind: the few fields that ``allocations.reconcile`` reads. Pure.

A projector makes them of the raw object, or None of one that concerns nobody here (most pods of a cluster);
``explained`` carries on what only the way from one state to the next tells.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any

from allocations.cluster import card_selector, names
from quotas.catalog import quantities
from quotas.catalog.discovery import GPU_TAINT
from quotas.catalog.nvidia import DRA_DRIVER

Raw = Mapping[str, Any]
GPU_PREFIXES = ("nvidia.com/", "gpu-portal.io/")
BYPASSED = "Bypassed scheduling"
UNEVALUATED = "PendingEvaluation"


def _whole(amount: str | int) -> int:
    """A count as Kubernetes writes it: 1000 is ``1k``."""
    return int(quantities.value(str(amount)))


def _conditions(raw: Raw) -> dict[str, dict[str, str]]:
    return {
        c["type"]: {
            "status": c["status"],
            "reason": c.get("reason", ""),
            "message": c.get("message", "")[:800],
            "at": c.get("lastTransitionTime", "").replace("Z", "+00:00"),
        }
        for c in raw.get("status", {}).get("conditions", ())
    }


def _created_at(raw: Raw) -> str:
    at: str = raw["metadata"].get("creationTimestamp", "")
    return at.replace("Z", "+00:00")


def workload(raw: Raw) -> Mapping[str, Any] | None:
    """A lease of ours, or what Kueue made of a tenant's Job in our queue.

    ``usage``: {flavor: {resource: amount}} that it takes of ``cluster_queue``, its name there, until it has finished.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status", {})
    job = _owner(metadata, "Job")
    is_ours = metadata.get("labels", {}).get(names.MANAGED) == "true"
    if not is_ours and not (job and spec.get("queueName") == names.LOCAL_QUEUE):
        return None
    conditions, admission = _conditions(raw), status.get("admission", {})
    finished = conditions.get("Finished", {}).get("status") == "True"
    facts = {
        "created_at": _created_at(raw),
        "conditions": conditions,
        "cluster_queue": admission.get("clusterQueue", ""),
        "usage": {} if finished else _usage(admission, status.get("reclaimablePods", ())),
        "record": metadata.get("annotations", {}).get(names.REQUEST, ""),
    }
    return facts if is_ours else facts | {"job": job, "priority": spec.get("priority", 0), "asks": _asked(spec)}


def explained(before: Raw, now: Raw) -> Raw:
    """Kueue replaces the reason in detail by "Bypassed ..." when a like workload failed before: the detail stays,
    unless it was none, or the reason is another by now."""
    was, said = (facts.get("conditions", {}).get("QuotaReserved", {}) for facts in (before, now))
    bypassed = said.get("message", "").startswith(BYPASSED) and said.get("status") == was.get("status") == "False"
    if not bypassed or not was["message"] or was["reason"] == UNEVALUATED:
        return now
    if said["reason"] not in (was["reason"], UNEVALUATED):
        return now
    kept = {**said, "reason": was["reason"], "message": was["message"]}
    return {**now, "conditions": {**now["conditions"], "QuotaReserved": kept}}


def _owner(metadata: Raw, kind: str) -> dict[str, str] | None:
    """Name and uid of the controller of that kind."""
    owners = metadata.get("ownerReferences", ())
    found = (o for o in owners if o.get("controller") and o["kind"] == kind)
    return next(({"name": o["name"], "uid": o["uid"]} for o in found), None)


def _usage(admission: Raw, reclaimable: Iterable[Raw]) -> dict[str, dict[str, int]]:
    """GPUs by flavor and resource; pods that are done (``reclaimablePods``) gave theirs back."""
    done = {one["name"]: one["count"] for one in reclaimable}
    usage: dict[str, Counter[str]] = {}
    for pods in admission.get("podSetAssignments", ()):
        count, left = pods.get("count", 1), pods.get("count", 1) - done.get(pods["name"], 0)
        for resource, flavor in pods.get("flavors", {}).items():
            if resource.startswith(GPU_PREFIXES):
                amount = _whole(pods.get("resourceUsage", {}).get(resource, 0))
                usage.setdefault(flavor, Counter())[resource] += amount * left // count if count else 0
    return {flavor: dict(amounts) for flavor, amounts in usage.items()}


def _asked(spec: Raw) -> dict[str, int]:
    """GPUs that all pods of a workload ask of device plugins, by resource."""
    asked: Counter[str] = Counter()
    for pods in spec.get("podSets", ()):
        for resource, amount in gpu_requests(pods["template"].get("spec", {})).items():
            asked[resource] += amount * pods.get("count", 1)
    return dict(asked)


def claim(raw: Raw) -> Mapping[str, Any]:
    """``devices`` as they were given; one that serves several claims with its ``share`` and what is taken of it.
    ``admin_devices`` are only looked at: whoever has them keeps them. ``cards``: the UUID that each request is steered
    to, in their order, "" for one that is not. ``pod``: uid of the pod for which the scheduler made it."""
    allocation = raw.get("status", {}).get("allocation", {})
    requests = raw.get("spec", {}).get("devices", {}).get("requests", ())
    results = allocation.get("devices", {}).get("results", ())
    looked_at = [_given(r) for r in results if r.get("adminAccess")]
    return {
        "devices": [_given(r) for r in results if not r.get("adminAccess")],
        **({"admin_devices": looked_at} if looked_at else {}),
        "allocated_at": allocation.get("allocationTimestamp", "").replace("Z", "+00:00"),
        "cards": [_card_requested(request.get("exactly", {}).get("selectors", ())) for request in requests],
        **_made_for(raw.get("metadata", {})),
    }


def _made_for(metadata: Raw) -> dict[str, str]:
    if metadata.get("annotations", {}).get("resource.kubernetes.io/extended-resource-claim") != "true":
        return {}
    owner = _owner(metadata, "Pod")
    return {"pod": owner["uid"]} if owner else {}


def _given(result: Raw) -> dict[str, Any]:
    given = {name: result[name] for name in ("request", "driver", "pool", "device")}
    if not result.get("shareID"):
        return given
    consumed = result.get("consumedCapacity", {})
    shares = {"shares": str(_whole(consumed["shares"]))} if "shares" in consumed else {}
    return given | {"share": result["shareID"], "consumed": {**consumed, **shares}}


def _card_requested(selectors: Iterable[Raw]) -> str:
    """The parent that one of the selectors names, as ``backends.dra`` writes it."""
    matches = (card_selector.IN_CARD.fullmatch(selector.get("cel", {}).get("expression", "")) for selector in selectors)
    return next((match[1] for match in matches if match), "")


def gpu_requests(pod_spec: Raw) -> dict[str, int]:
    """GPU resources that a pod asks of device plugins, at the most at once."""
    return dict(_at_once(pod_spec, _gpu_limits))


def node_requests(pod_spec: Raw) -> dict[str, int]:
    """CPU in millicores and memory in MiB that the scheduler keeps for a pod, rounded up.

    What is set for the pod as a whole stands for what its containers ask; the overhead of its runtime comes on top.
    Source: Kubernetes, pod-level resources, pod overhead.
    """
    as_a_whole, overhead = (_cpu_and_bytes(part) for part in (_requests(pod_spec), pod_spec.get("overhead", {})))
    asked = _at_once(pod_spec, lambda container: _cpu_and_bytes(_requests(container)))
    asked = Counter({**asked, **as_a_whole}) + overhead
    return {"cpu_millicores": asked["cpu"], "memory_mib": -(-asked["memory"] // 2**20)}


def _at_once(pod_spec: Raw, amounts: Callable[[Raw], Counter[str]]) -> Counter[str]:
    """What a pod's containers need at the most at once, of the ``amounts`` of each.

    Its containers run together with its sidecars (init containers that restart always); any other init container runs
    alone with the sidecars before it. Source: Kubernetes, sidecar containers, resource sharing within containers.
    """
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod_spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            sidecars += amounts(container)
        else:
            peak |= sidecars + amounts(container)
    together = sum((amounts(container) for container in pod_spec.get("containers", ())), sidecars)
    return peak | together


def _gpu_limits(container: Raw) -> Counter[str]:
    resources = container.get("resources", {})
    amounts = {**resources.get("requests", {}), **resources.get("limits", {})}
    return Counter({r: _whole(a) for r, a in amounts.items() if r.startswith("nvidia.com/")})


def _requests(owner: Raw) -> Mapping[str, str]:
    """``resources.requests`` of a container or a pod's spec."""
    requests: Mapping[str, str] = owner.get("resources", {}).get("requests", {})
    return requests


def _cpu_and_bytes(requests: Raw) -> Counter[str]:
    """CPU in millicores and memory in bytes, of what is asked of each."""
    units = {"cpu": 1000, "memory": 1}
    return Counter({r: ceil(quantities.value(str(requests[r])) * unit) for r, unit in units.items() if r in requests})


def pod(raw: Raw) -> Mapping[str, Any] | None:
    """What a pod uses. Of one that has nothing to do with GPUs, and may run on GPU nodes since it tolerates their
    taint, only what it takes of its node: of the daemons of a system, no more than that concerns anybody here."""
    spec, status, meta = raw.get("spec", {}), raw.get("status", {}), raw["metadata"]
    labels = meta.get("labels", {})
    gpus = gpu_requests(spec)
    takes = {
        "phase": status.get("phase", "Pending"),
        "node": spec.get("nodeName", ""),
        "gpus": gpus,
        **node_requests(spec),
    }
    if not gpus and not spec.get("resourceClaims") and names.ALLOCATION not in labels:
        return takes if takes["node"] and any(map(_tolerates_gpu_taint, spec.get("tolerations", ()))) else None
    conditions = _conditions(raw)
    scheduled = conditions.get("PodScheduled", {})
    job, extended = _owner(meta, "Job"), status.get("extendedResourceClaimStatus", {}).get("resourceClaimName", "")
    hold_class = spec.get("priorityClassName", "")
    return {
        **takes,
        **({"holder": True} if labels.get(names.HOLDER) == "true" else {}),
        **({"job": job["uid"], "job_name": job["name"], "scheduled_at": scheduled.get("at", "")} if job else {}),
        **({"extended_claim": extended} if extended else {}),
        **({"class": hold_class} if hold_class.startswith(names.HOLD) else {}),
        **({"ends_by": meta["deletionTimestamp"].replace("Z", "+00:00")} if "deletionTimestamp" in meta else {}),
        "ready_at": conditions.get("Ready", {}).get("at", ""),
        "unschedulable": scheduled.get("message", "") if scheduled.get("reason") == "Unschedulable" else "",
    }


def _tolerates_gpu_taint(toleration: Raw) -> bool:
    """Whether it is of the taint of GPU nodes, or of any."""
    return toleration.get("key", "") in ("", GPU_TAINT)


REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure")


def namespace(raw: Raw) -> Mapping[str, Any]:
    """``remaining``: what keeps one that is being deleted, in the words of Kubernetes' namespace controller."""
    conditions = _conditions(raw)
    found = [conditions[name]["message"] for name in REMAINING if conditions.get(name, {}).get("status") == "True"]
    return {"created_at": _created_at(raw), **({"remaining": found} if found else {})}


def quota(raw: Raw) -> Mapping[str, Any]:
    annotation = raw["metadata"].get("annotations", {}).get(names.SLICES, "{}")
    hard, status = (_amounts(raw.get(part, {}).get("hard", {})) for part in ("spec", "status"))
    return {"slices": json.loads(annotation), "hard": hard, "shown": hard == status}


def _amounts(hard: Raw) -> dict[str, str]:
    """Exact, however Kubernetes writes them: 1000m and 1 are both ``1``, 1500m is ``3/2``."""
    return {name: str(quantities.value(str(amount))) for name, amount in hard.items()}


def gpu_project(raw: Raw) -> Mapping[str, Any]:
    """``classes``: PriorityClasses that pods are given in this namespace."""
    allocations = raw.get("spec", {}).get("allocations", {})
    classes = {entry.get("priorityClassName", "") for entry in allocations.values()}
    return {"created_at": _created_at(raw), "allocations": sorted(allocations), "classes": sorted(classes - {""})}


def cluster_queue(raw: Raw) -> Mapping[str, Any]:
    """``inactive``: why it admits nothing, which what waits in it is not told."""
    status, active = raw.get("status", {}), _conditions(raw).get("Active", {})
    return {
        "pending": status.get("pendingWorkloads", 0),
        "reserving": status.get("reservingWorkloads", 0),
        "admitted": status.get("admittedWorkloads", 0),
        "spec": raw.get("spec", {}),
        **({"inactive": active["message"]} if active.get("status") == "False" else {}),
    }


def cohort(raw: Raw) -> Mapping[str, Any]:
    return {"spec": raw.get("spec", {})}


def node(raw: Raw) -> Mapping[str, Any] | None:
    status, spec = raw.get("status", {}), raw.get("spec", {})
    labels = {
        k: v for k, v in raw["metadata"].get("labels", {}).items() if k.startswith(("nvidia.com/", "kubernetes.io/"))
    }
    amounts = {
        which: {r: _whole(a) for r, a in status.get(which, {}).items() if r.startswith(GPU_PREFIXES)}
        for which in ("allocatable", "capacity")
    }
    if not any(amounts.values()) and not any(k.startswith("nvidia.com/") for k in labels):
        return None
    return {
        "labels": labels,
        **amounts,
        "gives": _gives(status.get("allocatable", {})),
        "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in spec.get("taints", ())],
        "ready": _conditions(raw).get("Ready", {}).get("status") == "True",
        "unschedulable": bool(spec.get("unschedulable")),
    }


def _gives(allocatable: Mapping[str, str]) -> dict[str, int]:
    """CPU in millicores, memory in MiB, and pods that the node can give."""
    return {
        "cpu_millicores": quantities.millicores(str(allocatable.get("cpu", 0))),
        "memory_mib": quantities.mib(str(allocatable.get("memory", 0))),
        "pods": _whole(allocatable.get("pods", 0)),
    }


def _plain(value: Raw) -> Any:
    """A typed attribute ({string: x} | {int: n} | {bool: b} | {version: v}) as its value."""
    return next(iter(value.values()), None)


def resource_slice(raw: Raw) -> Mapping[str, Any] | None:
    spec = raw.get("spec", {})
    if spec.get("driver") != DRA_DRIVER:
        return None
    return {
        "driver": spec["driver"],
        "node": spec.get("nodeName", ""),
        "pool": spec["pool"]["name"],
        "generation": spec["pool"]["generation"],
        "slice_count": spec["pool"]["resourceSliceCount"],
        "devices": [
            {
                "name": d["name"],
                "attributes": {k: _plain(v) for k, v in d.get("attributes", {}).items()},
                "versions": sorted(k for k, v in d.get("attributes", {}).items() if "version" in v),
                "capacity": {k: v["value"] for k, v in d.get("capacity", {}).items()},
                "counters": [
                    {"set": c["counterSet"], "counters": {k: v["value"] for k, v in c["counters"].items()}}
                    for c in d.get("consumesCounters", ())
                ],
                "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in d.get("taints", ())],
                "shareable": d.get("allowMultipleAllocations", False),
            }
            for d in spec.get("devices", ())
        ],
        "shared_counters": [
            {"name": c["name"], "counters": {k: v["value"] for k, v in c["counters"].items()}}
            for c in spec.get("sharedCounters", ())
        ],
    }


def device_class(raw: Raw) -> Mapping[str, Any]:
    """``extended_resource``: what pods ask to get its devices without a claim, "" for none."""
    spec = raw.get("spec", {})
    return {
        "extended_resource": spec.get("extendedResourceName", ""),
        "selectors": [each["cel"]["expression"] for each in spec.get("selectors", ()) if "cel" in each],
    }
