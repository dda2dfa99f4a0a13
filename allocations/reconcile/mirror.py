"""Reads the mirror: objects as last observed, as a Snapshot for the pure packages."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Subquery, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Concat

from allocations.cluster import names
from allocations.cluster.kinds import INVENTORY
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed_facts import pod_facts
from allocations.models import Allocation, MirrorObject, WatchState
from portal.core import clock
from portal.core.any_of import AnyOf
from portal.core.errors import Retryable
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Columns, Compiled, read_tables
from portal.tenants.models import Project

SHARED = ("ResourceQuota", "GpuProject", "Namespace")
RECENT = timedelta(seconds=30)


class MirrorStale(Retryable):
    """The mirror of leases is too old: the watcher is not running, or the database was restored from a backup."""


def require_recent(cluster: str) -> None:
    """Raise MirrorStale unless leases of the cluster were observed within RECENT."""
    leases = WatchState.objects.filter(cluster=cluster, kind="Workload")
    _require_recent(leases.values_list("synced_at", flat=True).first())


def require_recent_positions(positions: Iterable[Any]) -> None:
    """Raise MirrorStale as ``require_recent`` does, by what was read of the part of positions."""
    leases = (datetime.fromisoformat(one.synced_at) for one in positions if one.kind == "Workload")
    _require_recent(next(leases, None))


def _require_recent(synced_at: datetime | None) -> None:
    if synced_at is None or synced_at < clock.now() - RECENT:
        raise MirrorStale(f"leases were last seen {f'at {synced_at:%F %T}' if synced_at else 'never'}")


def leases_seen_at() -> dict[str, datetime]:
    """Return the time up to which the leases of each cluster are mirrored; one query."""
    return dict(WatchState.objects.filter(kind="Workload").order_by("cluster").values_list("cluster", "synced_at"))


POSITION = ("kind", "resource_version", "synced_at")
COLUMNS = ("kind", "namespace", "name", "uid", "resource_version", "digest", "allocation", "deleting", "facts")
_HOLD_CLASS = Concat(Value(names.HOLD_SLOT), "number", output_field=TextField())


def observed_object(row: Any) -> ObservedObject:
    """Return the object of a MirrorObject, or of what was read of its COLUMNS."""
    return ObservedObject(
        ref=Ref(row.kind, row.namespace, row.name),
        uid=row.uid,
        resource_version=row.resource_version,
        digest=row.digest,
        allocation=row.allocation,
        deleting=row.deleting,
        facts=row.facts,
    )


def of_cluster(cluster: str) -> QuerySet[MirrorObject]:
    return MirrorObject.objects.filter(cluster=cluster)


def _snapshot(cluster: str, rows: QuerySet[MirrorObject]) -> Snapshot:
    """Return the rows as a Snapshot; one query."""
    return of_parts(*read_tables(*_parts(cluster, rows)))


def _parts(cluster: str, rows: QuerySet[MirrorObject]) -> tuple[Columns, Columns]:
    return Columns(rows, COLUMNS), Columns(WatchState.objects.filter(cluster=cluster), POSITION)


def of_parts(objects: Iterable[Any], positions: Iterable[Any] = ()) -> Snapshot:
    """Return the Snapshot from what was read of the parts of objects and positions."""
    return Snapshot(map(observed_object, objects), {one.kind: one.resource_version for one in positions})


def of_allocations(cluster: str, namespace: str, allocations: Iterable[Allocation]) -> Snapshot:
    """Return the objects of some allocations of a namespace, all pods of their classes, and the shared objects; one
    query.
    """
    allocations = list(allocations)
    labels, classes = [row.name for row in allocations], _classes(allocations)
    return of_parts(
        *read_tables(*_OF_ALLOCATIONS.of(cluster=cluster, namespace=namespace, labels=labels, classes=classes))
    )


def parts_of_allocation(cluster: str, id_: UUID | str) -> tuple[Columns, Columns]:
    """Return what to read for the Snapshot that ``of_allocations`` returns for one allocation, before its row is read
    (``portal.core.reading``).
    """
    allocation = Allocation.objects.filter(pk=id_).order_by()
    namespace = Subquery(allocation.values("project__namespace"))
    classes = allocation.exclude(number=None).values(hold_class=_HOLD_CLASS)
    own = Q(allocation=Subquery(allocation.values("name"))) | Q(kind="Pod", pod_class__in=Subquery(classes))
    rows = of_cluster(cluster).annotate(pod_class=KT("facts__class"))
    return _parts(cluster, rows.filter(Q(namespace=namespace) & (own | Q(kind__in=SHARED))))


def _of_allocations(
    cluster: str, namespace: str, labels: Collection[str], classes: Collection[str]
) -> tuple[Columns, Columns]:
    own = Q(AnyOf("allocation", labels)) | Q(AnyOf("pod_class", classes), kind="Pod")
    rows = of_cluster(cluster).annotate(pod_class=KT("facts__class"))
    return _parts(cluster, rows.filter(Q(namespace=namespace) & (own | Q(kind__in=SHARED))))


_OF_ALLOCATIONS = QueryTemplate(_of_allocations, cluster=str, namespace=str, labels=list[str], classes=list[str])


def part_of_labels(cluster: str, namespaces: Collection[str], labels: Collection[str]) -> Compiled:
    """Return what to read of the objects that ``of_allocations`` selects, before the allocations are read, and perhaps
    those of one's name in another's namespace.
    """
    return _OF_LABELS.of(cluster=cluster, namespaces=list(namespaces), labels=list(labels))[0]


def _of_labels(cluster: str, namespaces: Collection[str], labels: Collection[str]) -> list[Columns]:
    named = AnyOf("project__namespace", namespaces), AnyOf("name", labels)
    allocations = Allocation.objects.filter(*named, project__cluster=cluster, number__isnull=False)
    classes = allocations.order_by().values(hold_class=_HOLD_CLASS)
    own = Q(AnyOf("allocation", labels)) | Q(kind="Pod", pod_class__in=Subquery(classes))
    rows = of_cluster(cluster).annotate(pod_class=KT("facts__class"))
    return [Columns(rows.filter(AnyOf("namespace", namespaces), own | Q(kind__in=SHARED)), COLUMNS)]


_OF_LABELS = QueryTemplate(_of_labels, cluster=str, namespaces=list[str], labels=list[str])


def selector_of(allocations: Iterable[Allocation]) -> Callable[[ObservedObject], bool]:
    """Return the condition by which ``of_allocations`` selects a namespace's objects."""
    allocations = list(allocations)
    names_, classes = {row.name for row in allocations}, _classes(allocations)

    def is_selected(one: ObservedObject) -> bool:
        is_of_class = one.ref.kind == "Pod" and pod_facts(one).get("class") in classes
        return one.allocation in names_ or is_of_class or one.ref.kind in SHARED

    return is_selected


def _classes(allocations: Iterable[Allocation]) -> list[str]:
    return [names.hold_slot(row.number) for row in allocations if row.number is not None]


def of_holds(cluster: str) -> dict[str, Snapshot]:
    """Return the objects that show which slices of a cluster are held and charged, by namespace; one query."""
    own = ~Q(allocation="") | Q(kind__in=SHARED) | Q(kind="Pod", facts__class__startswith=names.HOLD_SLOT)
    namespaces = Project.objects.filter(cluster=cluster).values("namespace")
    found: dict[str, list[ObservedObject]] = defaultdict(list)
    [rows] = read_tables(Columns(of_cluster(cluster).filter(own, namespace__in=namespaces), COLUMNS))
    for one in map(observed_object, rows):
        found[one.ref.namespace].append(one)
    return {namespace: Snapshot(objects) for namespace, objects in found.items()}


def of_project(cluster: str, namespace: str) -> Snapshot:
    """Return all objects of a namespace, and the Namespace itself."""
    return _snapshot(cluster, _of_project(cluster, namespace))


def parts_of_project(cluster: str, project: QuerySet[Project]) -> tuple[Columns, Columns]:
    """Return what to read for the Snapshot of a namespace without its pods and claims, before the project's row is
    read.
    """
    rows = _of_project(cluster, Subquery(project.values("namespace")))
    return _parts(cluster, rows.exclude(kind__in=("Pod", "ResourceClaim")))


def _of_project(cluster: str, namespace: str | Subquery) -> QuerySet[MirrorObject]:
    return of_cluster(cluster).filter(Q(namespace=namespace) | Q(kind="Namespace", name=namespace))


def of_kinds(cluster: str, *kinds: str) -> Snapshot:
    return _snapshot(cluster, of_cluster(cluster).filter(kind__in=kinds))


def parts_of_use(cluster: str, nodes: Collection[str]) -> tuple[Columns, Columns]:
    """Return what to read of the pods that are bound to these nodes, and of the claims with devices there."""
    pods, claims = _using(cluster, nodes)
    return Columns(pods, COLUMNS), Columns(claims, COLUMNS)


def _using(cluster: str, nodes: Collection[str]) -> tuple[QuerySet[MirrorObject], QuerySet[MirrorObject]]:
    pods = of_cluster(cluster).filter(kind="Pod").annotate(node=KT("facts__node")).filter(node__in=nodes)
    has_device = (Q(facts__contains={"devices": [{"pool": node}]}) for node in nodes)
    return pods, of_cluster(cluster).filter(reduce(or_, has_device, Q(pk=None)), kind="ResourceClaim")


def part_of_flavors(cluster: str, nodes: Collection[str] | None = None) -> Columns:
    """Return what to read for ``flavors_of``: of a cluster's live allocations, or of those that use these nodes."""
    rows = Allocation.objects.filter(project__cluster=cluster, ended_at=None).order_by()
    if nodes is not None:
        pods, claims = (Q(name__in=used.order_by().values("allocation")) for used in _using(cluster, nodes))
        rows = rows.filter(pods | claims)
    return Columns(rows, ("project__namespace", "name", "offering__flavor__name"))


def flavors_of(rows: Iterable[Any]) -> dict[str, str]:
    """Return the flavor of each allocation, by namespace and name, from what was read of ``part_of_flavors``."""
    return {f"{row.project__namespace}/{row.name}": row.offering__flavor__name for row in rows}


def nodes_of_jobs(cluster: str, jobs: Collection[str]) -> set[str]:
    """Return the nodes that the pods of these Jobs (uids) are bound to."""
    pods = of_cluster(cluster).filter(kind="Pod", allocation="", facts__job__in=jobs)
    return set(pods.values_list("facts__node", flat=True)) - {"", None}


def of_nodes(cluster: str) -> Snapshot:
    """Return the GPU nodes, the devices that drivers publish, all claims, and the pods bound to those nodes."""
    nodes = of_cluster(cluster).filter(kind="Node").values("name")
    rows = Q(kind__in=INVENTORY) | Q(kind="ResourceClaim") | Q(kind="Pod", node__in=nodes)
    return _snapshot(cluster, of_cluster(cluster).annotate(node=KT("facts__node")).filter(rows))
