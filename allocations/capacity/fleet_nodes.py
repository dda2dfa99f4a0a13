"""Nodes with their GPUs and who uses each: those that DRA names by device, those of a device plugin as a count.

The holders of named devices are those of the ledger. What a device plugin counts is told by the pods on the node, since
Kubernetes names no GPU of it; a hold without a pod is on no node.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet, Sum
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
from quotas.catalog.layouts import known_placement, parent_gpu
from quotas.catalog.models import Device, Node
from quotas.metering.models import ForeignUse, UsageInterval, device_of_slot
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
    the GPU; of a resource so many units.
    """

    holder: Holder
    device: str = ""
    profile: str = ""
    placement: tuple[int, int] | None = None
    count: int = 1


@dataclass(frozen=True)
class NodeGpu:
    """A GPU that DRA names. ``slices`` are the memory slices into which it can be divided, 0 if it cannot."""

    name: str
    uuid: str
    is_healthy: bool
    slices: int
    uses: Sequence[DeviceUse] = ()


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


def nodes(user: Person) -> QuerySet[Node]:
    """Return the present nodes, by flavor and name. Raises Forbidden for who is not platform staff."""
    rows = access.for_platform(user, Node.objects.filter(present=True))
    return rows.select_related("cluster", "flavor").order_by("flavor__name", "name", "pk")


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
    named, counted = _named_uses(rows), _counted_uses(rows)
    devices: dict[int, list[Device]] = defaultdict(list)
    for device in Device.objects.filter(node__in=rows, present=True).order_by():
        devices[device.node_id].append(device)
    return [
        FleetNode(
            row=row,
            facts=facts.get(key),
            gpus=_gpus(row, devices[row.pk], named[key]),
            resources=_resources(facts.get(key), counted[key]),
        )
        for row in rows
        for key in ((row.cluster_id, row.name),)
    ]


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


def _gpus(row: Node, devices: Iterable[Device], uses: Mapping[str, Sequence[DeviceUse]]) -> list[NodeGpu]:
    of_gpu: dict[str, list[Device]] = defaultdict(list)
    for device in devices:
        of_gpu[parent_gpu(device.name)].append(device)
    geometry = geometry_lookup.of_flavor(row.flavor) if row.flavor and row.flavor.partitionable else None
    found = []
    for name in sorted(of_gpu, key=lambda one: (len(one), one)):
        of_one = sorted(of_gpu[name], key=lambda one: one.name)
        first = of_one[0]
        placed = []
        for use in uses.get(name, ()):
            place = known_placement(geometry, use.device) if geometry else None
            profile = place.profile if place else _profile(use.device, of_one)
            placement = (place.start, place.size) if place else None
            placed.append(DeviceUse(use.holder, use.device, profile, placement, use.count))
        found.append(
            NodeGpu(
                name=name,
                uuid=str(first.attributes.get("parentUUID") or first.uuid),
                is_healthy=all(one.healthy for one in of_one),
                slices=geometry.memory if geometry else 0,
                uses=sorted(placed, key=lambda use: (use.placement or (0, 0), use.device)),
            )
        )
    return found


def _profile(device: str, devices: Iterable[Device]) -> str:
    return next((str(one.attributes.get("profile", "")) for one in devices if one.name == device), "")


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
    for one in UsageInterval.objects.filter(end=None, node__in=names).order_by("start"):
        if device := device_of_slot(one.slot, one.node):
            kind = "allocation" if one.member else "job"
            holder = Holder(kind, str(one.holder_id), "", one.team, one.project, one.member)
            found[one.cluster_id, one.node][parent_gpu(device)].append(DeviceUse(holder, device))
            charged.add(one.slot)
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
