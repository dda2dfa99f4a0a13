"""The platform controller: service accounts, hold classes, flow control, and limits as Kueue objects."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import structlog

from allocations.cluster import names
from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused
from allocations.cluster.manifests import platform
from allocations.domain.actions import Action, DesiredState, is_gone
from allocations.domain.admission import LIVE_PER_PROJECT
from allocations.domain.objects import Manifest
from allocations.models import MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.engine.applied import applied_objects, forget
from allocations.reconcile.engine.apply import apply
from allocations.reconcile.engine.plan import plan, stale_refs
from portal.core.locks import advisory_lock
from portal.tenants.models import Project, User
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.limits import selectors as limits

log = structlog.get_logger(__name__)
KINDS = (
    *("ServiceAccount", "PriorityLevelConfiguration", "FlowSchema"),
    *("PriorityClass", "Cohort", "ResourceFlavor", "ClusterQueue"),
)


def reconcile_platform(client: Client) -> datetime | None:
    """Reconcile service accounts, priority levels, FlowSchemas, PriorityClasses, Cohorts, ResourceFlavors and
    ClusterQueues; return None.

    A ResourceFlavor is never deleted here: leases on it would drop out of Kueue's usage.
    Raises ClusterUnavailable, ClusterRefused.
    """
    target = targets.platform(client.cluster)
    with advisory_lock(target):
        manifests = desired_manifests(client.cluster)
        snapshot, applied = mirror.of_kinds(client.cluster, *KINDS), applied_objects(target)
        stale = [ref for ref in stale_refs(manifests, snapshot, applied) if ref.kind != "ResourceFlavor"]
        refused = _apply_all(client, plan(DesiredState(objects=manifests, unwanted=[stale]), snapshot, applied), target)
        forget(client.cluster, (ref for ref in stale if is_gone(ref, snapshot, applied.get(ref))))
    if refused:
        raise refused[0]
    return None


def _apply_all(client: Client, actions: Iterable[Action], target: Target) -> list[ClusterRefused]:
    """Apply all actions, even if some are refused; return the refusals."""
    refused = []
    for action in actions:
        try:
            apply(client, [action], target)
        except ClusterRefused as error:
            log.error("platform.refused", action=type(action).__name__, error=str(error))
            refused.append(error)
    return refused


def desired_manifests(cluster: str) -> list[Manifest]:
    """Return the objects of the cluster that belong to no project."""
    people = User.objects.filter(is_active=True, memberships__isnull=False).distinct().order_by("username")
    namespaces, teams = _project_namespaces(cluster), _team_namespaces(cluster)
    return [
        *(platform.service_account(u.username) for u in people),
        *([platform.projects_flow(namespaces)] if namespaces else []),
        *map(platform.team_level, teams),
        *(platform.team_flow(team, own) for team, own in teams.items()),
        *map(platform.hold_class, map(names.hold_slot, range(LIVE_PER_PROJECT))),
        *(platform.labelled(manifest) for manifest in limits.manifests(cluster)),
    ]


def _team_namespaces(cluster: str) -> dict[str, list[str]]:
    """Return the namespaces of projects in use, by team."""
    found: dict[str, list[str]] = defaultdict(list)
    projects = Project.objects.filter(cluster=cluster, archived_at=None).order_by("team__slug", "namespace")
    for team, namespace in projects.values_list("team__slug", "namespace"):
        found[team].append(namespace)
    return found


def _project_namespaces(cluster: str) -> set[str]:
    """Return the namespaces of projects in use, and those with the portal's label, whose pods still run."""
    projects = Project.objects.filter(cluster=cluster, archived_at=None).values_list("namespace", flat=True)
    observed = MirrorObject.objects.filter(cluster=cluster, kind="Namespace").values_list("name", flat=True)
    return {*projects, *observed}
