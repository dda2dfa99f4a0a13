"""Reads which pods of tenants use an allocation now, in which state they are, and what the cluster says about them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from django.db.models import QuerySet

from allocations.cluster import events
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.events import PodEvent
from allocations.domain.observed_facts import PodFacts
from allocations.models import Allocation, MirrorObject

ON_A_NODE = ("starting", "running", "ending")


@dataclass(frozen=True)
class UsingPod:
    """A pod with the allocation's label. ``state`` is waiting, starting, running, ending, completed or failed;
    ``problem`` is why no node has room for it, ``since`` when it was bound to its node.
    """

    name: str
    state: str
    node: str
    problem: str
    since: datetime | None


def pods(row: Allocation) -> list[UsingPod]:
    """Return the tenants' pods with the allocation's label, by name; one query."""
    found = [(one.name, one.deleting, cast(PodFacts, one.facts)) for one in _rows(row).order_by("name")]
    return [_pod(name, facts, is_deleting=deleting) for name, deleting, facts in found if not facts.get("holder")]


def names_in_use(rows: Iterable[Allocation]) -> dict[UUID, list[str]]:
    """Return the tenants' pods that are on a node, of each allocation by its id; one query."""
    by_place = {(row.project.cluster_id, row.project.namespace, row.name): row.pk for row in rows if not row.ended_at}
    found: dict[UUID, list[str]] = {id_: [] for id_ in by_place.values()}
    columns = ("cluster_id", "namespace", "allocation", "name", "deleting", "facts")
    clusters, namespaces, names = ({place[n] for place in by_place} for n in range(3))
    pods = MirrorObject.objects.filter(
        kind="Pod", cluster__in=clusters, namespace__in=namespaces, allocation__in=names
    ).order_by("name")
    for *place, name, deleting, facts in pods.values_list(*columns):
        id_ = by_place.get(cast(tuple[str, str, str], tuple(place)))
        if id_ and not facts.get("holder") and _state(facts, is_deleting=deleting) in ON_A_NODE:
            found[id_].append(name)
    return found


def events_of(row: Allocation, pods: Collection[UsingPod]) -> Mapping[str, list[PodEvent]] | None:
    """Return the newest events of the pods by name; None if the cluster does not answer. One request to it."""
    if not pods:
        return {}
    try:
        client = connect(row.project.cluster_id)
        return events.of_pods(client, row.project.namespace, {pod.name for pod in pods})
    except (ClusterUnavailable, ClusterRefused):
        return None


def _rows(row: Allocation) -> QuerySet[MirrorObject]:
    return MirrorObject.objects.filter(
        cluster=row.project.cluster_id, kind="Pod", namespace=row.project.namespace, allocation=row.name
    )


def _pod(name: str, facts: PodFacts, *, is_deleting: bool) -> UsingPod:
    scheduled = facts.get("scheduled_at")
    return UsingPod(
        name=name,
        state=_state(facts, is_deleting=is_deleting),
        node=facts["node"],
        problem=facts.get("unschedulable", ""),
        since=datetime.fromisoformat(scheduled) if scheduled else None,
    )


def _state(facts: PodFacts, *, is_deleting: bool) -> str:
    finished = {"Succeeded": "completed", "Failed": "failed"}
    if facts["phase"] in finished:
        return finished[facts["phase"]]
    if is_deleting:
        return "ending"
    if facts["phase"] == "Running":
        return "running"
    return "starting" if facts["node"] else "waiting"
