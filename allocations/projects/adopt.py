"""Adopts an existing namespace as a project, and sets its guard.

An admin of the cluster permits it by a label on the namespace. The guard then warns: `refused_pods` returns which pods
it would refuse; without any an operator lets it refuse.
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
    """A new project in the namespace, guarded by warnings.

    ``options`` are those of `services.create_project`. Invalid where there is no such namespace, or no admin has let
    the portal in; ClusterUnavailable where nobody can tell.
    """
    access.require(user, "structure.manage", team)
    cluster = registry.own()
    found = namespaces.labels(connect(cluster), namespace)
    if found is None:
        raise Invalid({"namespace": [f"The cluster has no namespace {namespace}. Leave adopt out, and it is made."]})
    if found.get(names.ADOPT) != "true":
        allow = f"kubectl label namespace {namespace} {names.ADOPT}=true"
        raise Invalid({"namespace": [f"An admin of the cluster has to let the portal in: {allow}"]})
    return services.create_project(
        team, slug, name, cluster=cluster, namespace=namespace, adopt=True, actor=user.username, **options
    )


def refused_pods(user: User, project: Project) -> list[NonCompliantPod]:
    """Pods of the project's namespace that the guard would refuse, were they made anew; empty: it may refuse."""
    access.require(user, "structure.manage", project.team)
    return namespaces.non_compliant_pods(connect(project.cluster_id), project.namespace)


def set_guard(user: User, project: Project, guard: str) -> None:
    """Have the guard warn (``audit``) or refuse (``enforce``) what is made from now on. What runs is left alone."""
    access.require(user, "structure.manage", project.team)
    structure.set_guard(project, guard, actor=user.username)
