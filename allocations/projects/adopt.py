"""Adopts an existing namespace as a project, and sets its guard.

An admin of the cluster permits it by a label on the namespace. At first the guard only warns. `refused_pods` returns
the pods that it would refuse; once there are none, an operator sets it to refuse.
"""

from typing import Any

from allocations.cluster import names, namespaces
from allocations.cluster.client import connect
from allocations.cluster.namespaces import NonCompliantPod
from portal.clusters import registry
from portal.core.errors import Invalid
from portal.tenants import access, services, structure
from portal.tenants.models import Project, Team, User


def adopt(user: User, team: Team, slug: str, name: str, namespace: str, **options: Any) -> Project:
    """Create a project in the namespace, with a guard that only warns, and return it.

    ``options`` are those of `services.create_project`.

    Raises Forbidden; Invalid if the namespace does not exist or an admin has not labelled it; ClusterUnavailable.
    """
    access.require(user, "structure.manage", None)
    cluster = registry.own()
    labels = namespaces.labels(connect(cluster), namespace)
    if labels is None:
        raise Invalid({"namespace": [f"The cluster has no namespace {namespace}. Leave adopt out, and it is made."]})
    if labels.get(names.ADOPT) != "true":
        allow = f"kubectl label namespace {namespace} {names.ADOPT}=true"
        raise Invalid({"namespace": [f"An admin of the cluster has to let the portal in: {allow}"]})
    return services.create_project(
        team, slug, name, cluster=cluster, namespace=namespace, adopt=True, actor=user.username, **options
    )


def refused_pods(user: User, project: Project) -> list[NonCompliantPod]:
    """Return the pods of the project's namespace that the guard would refuse if they were created again."""
    access.require(user, "structure.manage", project.team)
    return namespaces.non_compliant_pods(connect(project.cluster_id), project.namespace)


def set_guard(user: User, project: Project, guard: str) -> None:
    """Set whether the guard warns of (``audit``) or refuses (``enforce``) new pods. Running pods are not affected."""
    access.require(user, "structure.manage", project.team)
    structure.set_guard(project, guard, actor=user.username)
