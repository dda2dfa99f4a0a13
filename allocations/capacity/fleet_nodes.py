"""Nodes with their GPUs and who uses each: those that DRA names by device, those of a device plugin as a count.

The holders of named devices are those of the ledger. What a device plugin counts is told by the pods on the node, since
Kubernetes names no GPU of it; a hold without a pod is on no node.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg, BoolAnd
from django.db.models import CharField, Exists, F, Func, Max, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.fields.json import KT

from allocations.capacity import geometry_lookup
from allocations.domain.observed_facts import NodeFacts, node_facts, pod_facts
from allocations.models import Allocation, MirrorObject
from portal.core.errors import NotVisible
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.access import Person
from portal.tenants.models import Project
from quotas.catalog import node_labels
from quotas.catalog.layouts import Placement, known_placement, label_of_device, parent_gpu
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.models import Device, Node
from quotas.metering.models import ForeignUse, HoldUse, UsageInterval, device_of_slot
from quotas.metering.units import GPU

ENDED = ("Succeeded", "Failed")
NodeKey = tuple[str, str]
"""Cluster and name."""


class Holder(NamedTuple):
    """``kind`` is allocation, job, or unmanaged for a pod or claim without an allocation, of which ``name`` tells kind,
    namespace and name. ``id`` is the allocation's id or the Job's uid.
    """

    kind: str
    id: str = ""
    name: str = ""
    team: str = ""
    project: str = ""
    member: str = ""


@dataclass(frozen=True)
class DeviceUse:
    """What a holder has: of a GPU a device, and its placement (first memory slice and their number) if that is part of
    the GPU; of a resource so many units. Without ``has_pod`` an allocation holds it and no pod uses it.
    """

    holder: Holder
    device: str = ""
    profile: str = ""
    placement: tuple[int, int] | None = None
    count: int = 1
    has_pod: bool = True


@dataclass(frozen=True)
class NodeGpu:
    """A GPU that DRA names. ``slices`` are the memory slices into which it can be divided, 0 if it cannot. If its
    driver publishes no device but MIG instances of it, ``instances`` are these.
    """

    name: str
    uuid: str
    is_healthy: bool
    slices: int
    uses: Sequence[DeviceUse] = ()
    instances: Sequence[Placement] = ()


@dataclass(frozen=True)
class NodeResource:
    """A resource that the device plugin counts on a node; ``replicas`` of its units are one GPU or MIG device."""

    name: str
    count: int
    usable: int
    uses: Sequence[DeviceUse] = ()
    replicas: int = 1

    @property
    def used(self) -> int:
        return sum(use.count for use in self.uses)


@dataclass(frozen=True)
class FleetNode:
    row: Node
    facts: NodeFacts | None
    gpus: Sequence[NodeGpu] = ()
    resources: Sequence[NodeResource] = ()
    geometry: Geometry | None = None


def nodes(user: Person) -> QuerySet[Node]:
    """Return the present nodes, by flavor and name. Raises Forbidden for who is not platform staff."""
    rows = access.for_platform(user, Node.objects.filter(present=True))
    return rows.select_related("cluster", "flavor").order_by("flavor__name", "name", "pk")


def used_by(team: str) -> Q:
    """Return the condition for nodes on which the team holds a device, or has a pod in one of its projects."""
    held = UsageInterval.objects.filter(end=None, team=team, cluster=OuterRef("cluster"), node=OuterRef("name"))
    projects = Project.objects.filter(team__slug=team, cluster=OuterRef("cluster"), namespace=OuterRef("namespace"))
    pods = MirrorObject.objects.annotate(node=KT("facts__node")).filter(
        Exists(projects), kind="Pod", cluster=OuterRef("cluster"), node=OuterRef("name")
    )
    return Q(Exists(held)) | Q(Exists(pods))


def node_named(user: Person, cluster: str, name: str) -> Node:
    """Return the node, also one that is gone. Raises Forbidden, NotVisible."""
    rows = access.for_platform(user, Node.objects.select_related("cluster", "flavor"))
    row = None if "\x00" in cluster + name else rows.filter(cluster=cluster, name=name).first()
    if row is None:
        raise NotVisible(f"The node {named(name)}")
    return row


def with_gpus(user: Person, rows: Sequence[Node]) -> list[FleetNode]:
    """Return these nodes with their GPUs and who uses them; a fixed number of queries. Raises Forbidden."""
    access.require(user, "platform.view", None)
    if not rows:
        return []
    of_mirror = MirrorObject.objects.filter(kind="Node", name__in={row.name for row in rows})
    facts = {(row.cluster_id, row.name): node_facts(row) for row in of_mirror}
    named, counted, devices = _named_uses(rows), _counted_uses(rows), _devices(rows)
    flavors = {row.flavor_id: row.flavor for row in rows if row.flavor}
    geometries = {id_: geometry_lookup.of_flavor(flavor) for id_, flavor in flavors.items()}
    found = []
    for row in rows:
        key, geometry = (row.cluster_id, row.name), geometries.get(row.flavor_id)
        divided = geometry if row.flavor and row.flavor.partitionable else None
        gpus = [_gpu(one, divided, named[key]) for one in devices[row.pk]]
        resources = _resources(facts.get(key), counted[key])
        found.append(FleetNode(row, facts.get(key), gpus, resources, geometry))
    return found


def held_as_count(user: Person) -> dict[str, dict[str, int]]:
    """Return how many slices of each offering allocations hold without a node, by flavor and offering: until a pod of
    theirs runs, what a device plugin counts is on none. One query. Raises Forbidden.
    """
    access.require(user, "platform.view", None)
    rows = UsageInterval.objects.filter(end=None, node="").exclude(member="").order_by("flavor", "offering")
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for flavor, offering, count in rows.values_list("flavor", "offering").annotate(Sum("count")):
        found[flavor][offering] = count
    return found


class PublishedGpu(NamedTuple):
    """A GPU of which a node publishes devices; ``parts`` are those that are MIG instances, if it is none itself."""

    name: str
    uuid: str
    is_healthy: bool
    parts: Sequence[str]


def _devices(rows: Sequence[Node]) -> dict[int, list[PublishedGpu]]:
    """Return the published GPUs by node, in the order of their numbers; one query, since a GPU that can be divided has
    dozens of devices.
    """
    devices = Device.objects.filter(node__in=rows, present=True).order_by()
    split = Func(F("name"), Value("-mig-"), Value(1), function="split_part", output_field=CharField())
    is_whole = Q(name=F("gpu"))
    by_gpu = devices.annotate(gpu=split, parent=KT("attributes__parentUUID")).values_list("node_id", "gpu")
    values = by_gpu.annotate(
        all_healthy=BoolAnd("healthy"),
        own_uuid=Max("uuid", filter=is_whole),
        parent_uuid=Max("parent"),
        names=ArrayAgg("name"),
    )
    found: dict[int, list[PublishedGpu]] = defaultdict(list)
    for node, gpu, healthy, own, parent, names in sorted(values, key=lambda one: (len(one[1]), one[1])):
        found[node].append(PublishedGpu(gpu, own or parent or "", healthy, names if own is None else ()))
    return found


def _gpu(one: PublishedGpu, geometry: Geometry | None, uses: Mapping[str, Sequence[DeviceUse]]) -> NodeGpu:
    placed = []
    for use in uses.get(one.name, ()):
        place = known_placement(geometry, use.device) if geometry else None
        profile = place.profile if place else label_of_device(use.device)
        placement = (place.start, place.size) if place else None
        placed.append(replace(use, profile=profile, placement=placement))
    instances = [place for name in one.parts if geometry and (place := known_placement(geometry, name))]
    return NodeGpu(
        name=one.name,
        uuid=one.uuid,
        is_healthy=one.is_healthy,
        slices=geometry.memory if geometry else 0,
        uses=sorted(placed, key=lambda use: (use.placement or (0, 0), use.device)),
        instances=sorted(instances, key=lambda place: place.start),
    )


def _resources(facts: NodeFacts | None, uses: Mapping[str, Sequence[DeviceUse]]) -> list[NodeResource]:
    if not facts:
        return []
    return [
        NodeResource(
            name,
            count,
            facts["allocatable"].get(name, 0),
            uses.get(name, ()),
            node_labels.replicas(facts["labels"], node_labels.base_of(name)),
        )
        for name, count in sorted(facts["capacity"].items())
        if count
    ]


Uses = dict[NodeKey, dict[str, list[DeviceUse]]]


def _uses() -> Uses:
    return defaultdict(lambda: defaultdict(list))


def _named_uses(rows: Sequence[Node]) -> Uses:
    """Return the uses of devices that DRA names by node and GPU; two queries."""
    names, found, charged = {row.name for row in rows}, _uses(), set()
    held = UsageInterval.objects.filter(end=None, node__in=names).order_by("start")
    in_use = HoldUse.objects.filter(end=None, holder_id=OuterRef("holder_id"))
    columns = ("slot", "cluster_id", "node", "holder_id", "team", "project", "member", "has_pod")
    for slot, cluster, node, id_, team, project, member, has_pod in held.annotate(has_pod=Exists(in_use)).values_list(
        *columns
    ):
        if device := device_of_slot(slot, node):
            holder = Holder("allocation" if member else "job", str(id_), "", team, project, member)
            held_use = DeviceUse(holder, device, has_pod=has_pod or not member)
            found[cluster, node][parent_gpu(device)].append(held_use)
            charged.add(slot)
    for use in ForeignUse.objects.filter(end=None, kind=GPU, node__in=names).order_by("start"):
        if use.slot not in charged:
            holder = Holder("unmanaged", name=f"{use.consumer_kind} {use.namespace}/{use.consumer}")
            found[use.cluster_id, use.node][parent_gpu(use.name)].append(DeviceUse(holder, use.name))
    return found


def _counted_uses(rows: Sequence[Node]) -> Uses:
    """Return the uses of device plugins' resources by node and resource; three queries."""
    names, found = {row.name for row in rows}, _uses()
    pods = MirrorObject.objects.annotate(node=KT("facts__node")).filter(kind="Pod", node__in=names)
    running = [
        (pod, facts)
        for pod in pods.filter(cluster__in={row.cluster_id for row in rows}).order_by("namespace", "name")
        if (facts := pod_facts(pod))["gpus"] and facts["phase"] not in ENDED
    ]
    teams = _projects({pod.namespace for pod, _ in running})
    ids = _allocations({pod.allocation for pod, _ in running if pod.allocation})
    for pod, facts in running:
        project, team = teams.get((pod.cluster_id, pod.namespace), ("", ""))
        id_, member = ids.get((project, pod.allocation), (None, ""))
        if id_ is not None:
            holder = Holder("allocation", str(id_), "", team, project, member)
        elif (uid := facts.get("job")) and project:
            holder = Holder("job", uid, "", team, project)
        else:
            holder = Holder("unmanaged", name=f"Pod {pod.namespace}/{pod.name}")
        for resource, count in facts["gpus"].items():
            found[pod.cluster_id, facts["node"]][resource].append(DeviceUse(holder, count=count))
    return found


def _projects(namespaces: Collection[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return slug and team of the projects by cluster and namespace."""
    rows = Project.objects.filter(namespace__in=namespaces).order_by()
    columns = ("cluster_id", "namespace", "slug", "team__slug")
    return {(cluster, namespace): (slug, team) for cluster, namespace, slug, team in rows.values_list(*columns)}


def _allocations(names: Collection[str]) -> dict[tuple[str, str], tuple[UUID, str]]:
    """Return id and requester of the live allocations of these names, by project and name."""
    rows = Allocation.objects.filter(Q(ended_at=None), name__in=names).order_by()
    columns = ("project__slug", "name", "pk", "requested_by__username")
    return {(project, name): (pk, member) for project, name, pk, member in rows.values_list(*columns)}
