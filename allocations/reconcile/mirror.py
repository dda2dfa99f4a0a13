"""Reads the mirror: objects as last observed, as a Snapshot for the pure packages."""

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

SHARED = ("ResourceQuota", "GpuProject", "Namespace")
RECENT = timedelta(seconds=30)


class MirrorStale(Retryable):
    """Leases were last seen too long ago: the watcher is away, or the database came back from a backup."""


def require_recent() -> None:
    """Raises MirrorStale unless leases were seen within RECENT."""
    state = WatchState.objects.filter(kind="Workload").first()
    if state is None or state.synced_at < clock.now() - RECENT:
        raise MirrorStale(f"leases were last seen {f'at {state.synced_at:%F %T}' if state else 'never'}")


def seen(row: MirrorObject) -> ObservedObject:
    return ObservedObject(
        ref=Ref(row.kind, row.namespace, row.name),
        uid=row.uid,
        resource_version=row.resource_version,
        digest=row.digest,
        allocation=row.allocation,
        deleting=row.deleting,
        facts=row.facts,
    )


def synced() -> dict[str, int]:
    return dict(WatchState.objects.values_list("kind", "resource_version"))


def _view(rows: QuerySet[MirrorObject]) -> Snapshot:
    # The revision is read before the rows: they may be newer than it says, never older: none is called gone too early.
    complete = synced()
    return Snapshot(map(seen, rows), complete)


def of_allocations(namespace: str, allocations: Iterable[Allocation]) -> Snapshot:
    """The own objects of some allocations of a namespace, all pods of their classes, and what the namespace shares."""
    allocations = list(allocations)
    classes = [names.hold_slot(row.number) for row in allocations if row.number is not None]
    own = Q(allocation__in=[row.name for row in allocations]) | Q(kind="Pod", facts__class__in=classes)
    return _view(MirrorObject.objects.filter(namespace=namespace).filter(own | Q(kind__in=SHARED)))


def of_project(namespace: str) -> Snapshot:
    """A namespace whole, and the Namespace itself."""
    return _view(MirrorObject.objects.filter(Q(namespace=namespace) | Q(kind="Namespace", name=namespace)))


def of_kinds(*kinds: str) -> Snapshot:
    return _view(MirrorObject.objects.filter(kind__in=kinds))


def of_nodes() -> Snapshot:
    """GPU nodes, what drivers publish there, all claims, and the pods that are bound to those nodes."""
    nodes = MirrorObject.objects.filter(kind="Node").values("name")
    there = Q(kind__in=INVENTORY) | Q(kind="ResourceClaim") | Q(kind="Pod", node__in=nodes)
    return _view(MirrorObject.objects.annotate(node=KT("facts__node")).filter(there))
