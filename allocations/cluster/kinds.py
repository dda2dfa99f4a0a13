"""The kinds the portal reads and writes, and which few fields of each it remembers. Pure.

All are mirrored by the watcher: ours by label, and unlabelled those that say what there is and who
uses it (nodes, slices, claims, pods, workloads of tenants' own Jobs).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from allocations.cluster import names, owned_fields, projectors
from allocations.domain.actions import digest
from allocations.domain.objects import Ref

log = structlog.get_logger(__name__)
Raw = Mapping[str, Any]
OURS = f"{names.MANAGED}=true"


@dataclass(frozen=True, slots=True)
class Observation:
    """A fact read from the cluster: this object, at this revision, looked so, or was gone.

    ``live`` is whether the watch saw it happen; else it was found by a list, and ``at`` is the moment up to which
    the earlier state is known to have lasted (the last sighting).
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
    managed: bool = False
    deleting: bool = False
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Kind:
    name: str
    api_version: str
    plural: str
    namespaced: bool = True
    selector: str = OURS
    project: Callable[[Raw], Mapping[str, Any] | None] = lambda raw: {}
    carry: Callable[[Raw, Raw], Raw] = lambda before, now: now
    """(Facts last recorded, facts projected now) → facts to record: what only the way from one to the other tells."""
    only_in: str = ""
    """The one namespace in which the portal may read the kind, where it may not read all."""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
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

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("Workload", _KUEUE, "workloads", selector="", project=projectors.workload, carry=projectors.explained),
        Kind("ResourceClaim", "resource.k8s.io/v1", "resourceclaims", selector="", project=projectors.claim),
        Kind("Pod", "v1", "pods", selector="", project=projectors.pod),
        Kind("ResourceQuota", "v1", "resourcequotas", project=projectors.quota),
        Kind("GpuProject", "gpu-portal.io/v1", "gpuprojects", project=projectors.gpu_project),
        Kind("Namespace", "v1", "namespaces", namespaced=False, project=projectors.namespace),
        Kind("LimitRange", "v1", "limitranges"),
        Kind("LocalQueue", _KUEUE, "localqueues"),
        Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
        Kind("RoleBinding", _RBAC, "rolebindings"),
        Kind("ServiceAccount", "v1", "serviceaccounts", only_in=names.PEOPLE_NAMESPACE),
        Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
        Kind("Cohort", _KUEUE, "cohorts", namespaced=False, project=projectors.cohort),
        Kind("ClusterQueue", _KUEUE, "clusterqueues", namespaced=False, project=projectors.cluster_queue),
        Kind("ResourceFlavor", _KUEUE, "resourceflavors", namespaced=False),
        Kind("Node", "v1", "nodes", namespaced=False, selector="", project=projectors.node),
        Kind(
            "ResourceSlice",
            "resource.k8s.io/v1",
            "resourceslices",
            namespaced=False,
            selector="",
            project=projectors.resource_slice,
        ),
        Kind(
            "DeviceClass",
            "resource.k8s.io/v1",
            "deviceclasses",
            namespaced=False,
            selector="",
            project=projectors.device_class,
        ),
    )
}
INVENTORY = frozenset({"Node", "ResourceSlice", "DeviceClass"})


def our_fields(raw: Raw) -> str:
    """Digest of the fields that our server-side apply owns and of their values, or "" when it owns none."""
    owned = owned_fields.owned_values(raw)
    return digest(owned) if owned else ""


def is_ours(raw: Raw) -> bool:
    """Whether the portal keeps the object: it has our label, and our server-side apply owns fields of it."""
    labels = raw["metadata"].get("labels") or {}
    return labels.get(names.MANAGED) == "true" and bool(owned_fields.owned_values(raw))


def observe(kind: Kind, raw: Raw, *, at: datetime, live: bool, gone: bool = False) -> Observation | None:
    """One object as it came from the API server, as an Observation; None when it concerns nobody here."""
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    is_ours = labels.get(names.MANAGED) == "true"
    try:
        facts = kind.project(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if is_ours:
            raise
        # Anyone may make a pod: one that cannot be read must not keep all others from being seen.
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
        managed=is_ours,
        deleting="deletionTimestamp" in metadata,
        facts=facts,
    )
