"""The Kubernetes kinds that the portal reads and writes, each with its API path and its projector. Pure.

The watcher mirrors all of them. Of most kinds it mirrors only objects with the portal's label. Of nodes, pods,
Workloads and the kinds of Dynamic Resource Allocation it lists all objects, and the projector selects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from allocations.cluster import names, owned_fields
from allocations.cluster.projectors import devices, namespaces, nodes, pods, workloads
from allocations.domain.actions import digest
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import ObservedFacts

log = structlog.get_logger(__name__)
Raw = Mapping[str, Any]
OURS = f"{names.MANAGED}=true"


@dataclass(frozen=True, slots=True)
class Observation:
    """One object at one revision, as a watch or a list returned it, or its deletion.

    With ``live``, a watch reported the change when it happened, at ``at``. Else a list found it, and ``at`` is the time
    at which the former state was last seen.
    """

    ref: Ref
    uid: str
    resource_version: int
    at: datetime
    live: bool
    gone: bool = False
    digest: str = ""
    allocation: str = ""
    project: str = ""
    deleting: bool = False
    facts: ObservedFacts | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of Kubernetes objects, with the label selector of the objects to mirror and their projector."""

    name: str
    api_version: str
    plural: str
    namespaced: bool = True
    selector: str = OURS
    projector: Callable[[Raw], ObservedFacts | None] = lambda raw: {}
    """Raw object → facts; None for an object that does not concern the portal."""
    merge: Callable[[ObservedFacts, ObservedFacts], ObservedFacts] = lambda before, after: after
    """(Recorded facts, new facts) → facts to record, for facts that depend on the former state."""
    can_wait: bool = False
    """Whether observations of the kind are recorded with others or after two seconds. Most of a ClusterQueue's only
    count its workloads."""
    only_in: str = ""
    """The only namespace in which the portal may read the kind; "" for all namespaces."""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the API path of the kind, of a namespace's objects, of one object, or of its subresource."""
        namespace = namespace or self.only_in
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        parts = [
            root,
            f"namespaces/{namespace}" if namespace and self.namespaced else "",
            self.plural,
            name,
            subresource,
        ]
        return "/".join(part for part in parts if part)


_KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io/v1"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1"

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "Workload",
            _KUEUE,
            "workloads",
            selector="",
            projector=workloads.workload,
            merge=workloads.keep_pending_reason,
        ),
        Kind("ResourceClaim", "resource.k8s.io/v1", "resourceclaims", selector="", projector=devices.claim),
        Kind("Pod", "v1", "pods", selector="", projector=pods.pod),
        Kind(
            "ResourceQuota",
            "v1",
            "resourcequotas",
            projector=namespaces.quota,
            merge=namespaces.keep_shown_at,
        ),
        Kind("GpuProject", "gpu-portal.io/v1", "gpuprojects", projector=namespaces.gpu_project),
        Kind("Namespace", "v1", "namespaces", namespaced=False, projector=namespaces.namespace),
        Kind("LimitRange", "v1", "limitranges"),
        Kind("LocalQueue", _KUEUE, "localqueues"),
        Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
        Kind("RoleBinding", _RBAC, "rolebindings"),
        Kind("ServiceAccount", "v1", "serviceaccounts", only_in=names.PEOPLE_NAMESPACE),
        Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
        Kind("FlowSchema", _FLOW_CONTROL, "flowschemas", namespaced=False),
        Kind("PriorityLevelConfiguration", _FLOW_CONTROL, "prioritylevelconfigurations", namespaced=False),
        Kind("Cohort", _KUEUE, "cohorts", namespaced=False, projector=workloads.cohort),
        Kind(
            "ClusterQueue",
            _KUEUE,
            "clusterqueues",
            namespaced=False,
            projector=workloads.cluster_queue,
            can_wait=True,
        ),
        Kind("ResourceFlavor", _KUEUE, "resourceflavors", namespaced=False),
        Kind("Node", "v1", "nodes", namespaced=False, selector="", projector=nodes.node),
        Kind(
            "ResourceSlice",
            "resource.k8s.io/v1",
            "resourceslices",
            namespaced=False,
            selector="",
            projector=devices.resource_slice,
        ),
        Kind(
            "DeviceClass",
            "resource.k8s.io/v1",
            "deviceclasses",
            namespaced=False,
            selector="",
            projector=devices.device_class,
        ),
    )
}
INVENTORY = frozenset({"Node", "ResourceSlice", "DeviceClass"})
"""Kinds that describe the fleet. The portal only reads them."""


def our_fields(raw: Raw) -> str:
    """Return a digest of the fields that the portal's server-side apply owns, with their values; "" if it owns none."""
    owned = owned_fields.owned_values(raw)
    return digest(owned) if owned else ""


def is_ours(raw: Raw) -> bool:
    """Return whether the portal manages the object: it has the portal's label and fields owned by its apply."""
    labels = raw["metadata"].get("labels") or {}
    return labels.get(names.MANAGED) == "true" and bool(owned_fields.owned_values(raw))


def observe(kind: Kind, raw: Raw, *, at: datetime, live: bool, gone: bool = False) -> Observation | None:
    """Return the observation of a raw object; None if it does not concern the portal.

    Raises what the projector raises if the portal manages the object. Other unreadable objects are logged and left out.
    """
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    is_ours = labels.get(names.MANAGED) == "true"
    try:
        facts = kind.projector(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if is_ours:
            raise
        # Tenants create pods: one that cannot be read must not stop the watch of all others.
        log.error("observe.unreadable", kind=kind.name, name=metadata["name"], error=repr(error))
        return None
    if facts is None:
        return None
    return Observation(
        ref=Ref(kind.name, metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        at=at,
        live=live,
        gone=gone,
        digest=our_fields(raw),
        allocation=labels.get(names.ALLOCATION, ""),
        project=labels.get(names.PROJECT, ""),
        deleting="deletionTimestamp" in metadata,
        facts=facts,
    )
