"""Existing namespaces that become projects: who permits it, and what their guard would refuse.

An admin of the cluster permits it by a label on the namespace. At first the guard only warns. `refused_pods` returns
the pods that it would refuse; once there are none, an operator sets it to refuse.
"""

from allocations.cluster import names, namespaces
from allocations.cluster.client import connect
from allocations.cluster.namespaces import NonCompliantPod
from portal.core.errors import Invalid
from portal.tenants import access
from portal.tenants.models import Project, User


def require_permitted(cluster: str, namespace: str) -> None:
    """Raise Invalid if the namespace does not exist or an admin has not labelled it; ClusterUnavailable."""
    labels = namespaces.labels(connect(cluster), namespace)
    if labels is None:
        raise Invalid({"namespace": [f"The cluster has no namespace {namespace}. Leave adopt out, and it is made."]})
    if labels.get(names.ADOPT) != "true":
        allow = f"kubectl label namespace {namespace} {names.ADOPT}=true"
        raise Invalid({"namespace": [f"An admin of the cluster has to let the portal in: {allow}"]})


def refused_pods(user: User, project: Project) -> list[NonCompliantPod]:
    """Return the pods of the project's namespace that the guard would refuse if they were created again."""
    access.require(user, "structure.manage", project.team)
    return namespaces.non_compliant_pods(connect(project.cluster_id), project.namespace)
