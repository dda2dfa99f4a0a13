"""Reads the mirror: objects as last observed, as a Snapshot for the pure packages."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.fields.json import KT

from allocations.cluster import names
from allocations.cluster.kinds import INVENTORY
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.models import Allocation, MirrorObject, WatchState
from portal.core import clock
from portal.core.errors import Retryable
from portal.tenants.models import Project

SHARED = ("ResourceQuota", "GpuProject", "Namespace")
RECENT = timedelta(seconds=30)


class MirrorStale(Retryable):
    """The mirror of leases is too old: the watcher is not running, or the database was restored from a backup."""


def require_recent(cluster: str) -> None:
    """Raise MirrorStale unless leases of the cluster were observed within RECENT."""
    state = WatchState.objects.filter(cluster=cluster, kind="Workload").first()
    if state is None or state.synced_at < clock.now() - RECENT:
        raise MirrorStale(f"leases were last seen {f'at {state.synced_at:%F %T}' if state else 'never'}")


def observed_object(row: MirrorObject) -> ObservedObject:
    return ObservedObject(
        ref=Ref(row.kind, row.namespace, row.name),
        uid=row.uid,
        resource_version=row.resource_version,
        digest=row.digest,
        allocation=row.allocation,
        deleting=row.deleting,
        facts=row.facts,
    )


def synced_revisions(cluster: str) -> dict[str, int]:
    """Return the revision up to which the mirror of each kind is complete."""
    return dict(WatchState.objects.filter(cluster=cluster).values_list("kind", "resource_version"))


def of_cluster(cluster: str) -> QuerySet[MirrorObject]:
    return MirrorObject.objects.filter(cluster=cluster)


def _snapshot(cluster: str, rows: Q) -> Snapshot:
    # The revisions are read before the rows, so the rows may be newer, never older: nothing counts as gone too early.
    complete = synced_revisions(cluster)
    return Snapshot(map(observed_object, of_cluster(cluster).filter(rows)), complete)


def of_allocations(cluster: str, namespace: str, allocations: Iterable[Allocation]) -> Snapshot:
    """Return the objects of some allocations of a namespace, all pods of their classes, and the shared objects."""
    allocations = list(allocations)
    classes = [names.hold_slot(row.number) for row in allocations if row.number is not None]
    own = Q(allocation__in=[row.name for row in allocations]) | Q(kind="Pod", facts__class__in=classes)
    return _snapshot(cluster, Q(namespace=namespace) & (own | Q(kind__in=SHARED)))


def of_holds(cluster: str) -> dict[str, Snapshot]:
    """Return the objects that show which slices of a cluster are held and charged, by namespace; one query."""
    own = ~Q(allocation="") | Q(kind__in=SHARED) | Q(kind="Pod", facts__class__startswith=names.HOLD_SLOT)
    namespaces = Project.objects.filter(cluster=cluster).values("namespace")
    found: dict[str, list[ObservedObject]] = defaultdict(list)
    for row in of_cluster(cluster).filter(own, namespace__in=namespaces):
        found[row.namespace].append(observed_object(row))
    return {namespace: Snapshot(objects) for namespace, objects in found.items()}


def of_project(cluster: str, namespace: str) -> Snapshot:
    """Return all objects of a namespace, and the Namespace itself."""
    return _snapshot(cluster, Q(namespace=namespace) | Q(kind="Namespace", name=namespace))


def of_kinds(cluster: str, *kinds: str) -> Snapshot:
    return _snapshot(cluster, Q(kind__in=kinds))


def of_nodes(cluster: str) -> Snapshot:
    """Return the GPU nodes, the devices that drivers publish, all claims, and the pods bound to those nodes."""
    nodes = of_cluster(cluster).filter(kind="Node").values("name")
    rows = Q(kind__in=INVENTORY) | Q(kind="ResourceClaim") | Q(kind="Pod", node__in=nodes)
    complete = synced_revisions(cluster)
    return Snapshot(map(observed_object, of_cluster(cluster).annotate(node=KT("facts__node")).filter(rows)), complete)
