"""Clears what a test leaves in its project, so that no other test meets it while it is still ending."""

from allocations.models import MirrorObject
from portal.tenants.models import Project
from tests.support.cluster.allocations import release_all
from tests.support.cluster.api_client import NAMESPACED, ApiClient
from tests.support.cluster.waiting import eventually

PODS = NAMESPACED["Pod"]
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
MIRRORED = ("Pod", "ResourceClaim", "Workload")


def clear(admin: ApiClient, project: Project) -> None:
    """Delete what makes pods, release the project's allocations and end its pods at once; return when no GPU or quota
    is in use by the project, in the cluster and in the portal's mirror of it, and its namespace is not being deleted.
    """
    for path in NAMESPACED.values():
        if path != PODS:
            admin.call("DELETE", path.format(project.namespace), {"propagationPolicy": "Background"})
    release_all(project)
    eventually(lambda: _is_clear(admin, project.namespace))


def _is_clear(admin: ApiClient, namespace: str) -> bool:
    """Return whether nothing is left; else delete it, as controllers may just have created more."""
    left = [path.format(namespace) for path in (PODS, CLAIMS, WORKLOADS) if admin.items(path.format(namespace))]
    for path in left:
        admin.call("DELETE", path, {"gracePeriodSeconds": 0})
    observed = MirrorObject.objects.filter(namespace=namespace, kind__in=MIRRORED)
    found = admin.call("GET", f"/api/v1/namespaces/{namespace}")
    is_ending = "deletionTimestamp" in found.body.get("metadata", {})
    return not left and not is_ending and not observed.exists()
