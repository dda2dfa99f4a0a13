"""Records in the capacity ledger what nodes have: the watcher in the transaction in which it sees that it has changed,
and the controller of the catalogue what it knows of it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import cast

from allocations.domain.observed_facts import NodeFacts, NodeSize, ResourceSliceFacts, slice_facts
from allocations.models import MirrorObject
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.metering import capacity_values, node_units
from allocations.reconcile.mirror_change import Change
from allocations.reconcile.recorder import Recorder, Seen
from quotas.catalog.models import Flavor
from quotas.catalog.types import Discovered
from quotas.costs import node_intervals
from quotas.costs.node_intervals import FoundNode
from quotas.costs.node_terms import term_of_labels
from quotas.metering import capacity, inferred_capacity
from quotas.metering.capacity import OpenUnits
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit

SHOW_CAPACITY = frozenset({"Node", "ResourceSlice"})
MAX_SIZE = 2**31 - 1
"""The largest CPU in millicores and memory in MiB that a column has. A node may say any number."""


def record(cluster: str, changes: Iterable[Change]) -> None:
    """Record the capacity of the nodes that these changes are about, as the mirror has it now.

    Changes that a list shows are dated at the last complete mirror, and flagged estimated. Those of one time are
    recorded together, in a fixed number of queries.
    """
    by_time: dict[tuple[datetime, bool], dict[str, dict[str, str]]] = defaultdict(dict)
    for change in changes:
        if change.new.ref.kind in SHOW_CAPACITY:
            by_time[change.new.at, change.new.live] |= {node: _evidence(change) for node in _nodes(change)}
    for (at, live), evidence in by_time.items():
        nodes, slices = _facts(cluster, evidence)
        capacity.record(cluster, evidence, partial(_units, nodes, slices), at, estimated=not live)
        shown = {node: one for node, one in evidence.items() if one["kind"] == "Node"}
        node_intervals.record(cluster, shown, _sizes(nodes), at, estimated=not live)


def _watched(batch: BatchState, seen: Seen) -> None:
    if seen.change.new.live and seen.change.new.ref.kind in SHOW_CAPACITY:
        batch.write()
        record(batch.cluster, [seen.change])


def _listed_changes(batch: BatchState, seen: Sequence[Seen]) -> None:
    changes = [one.change for one in seen if not one.change.new.live and one.change.new.ref.kind in SHOW_CAPACITY]
    if changes:
        batch.write()
        record(batch.cluster, changes)


def record_listed(cluster: str, kind: str, at: datetime) -> None:
    """Record, once a kind that shows capacity was listed, that of nodes of which nothing is recorded, and the end of
    that of nodes that are gone: what no change has told, such as what was there before capacity was recorded.
    """
    if kind in SHOW_CAPACITY:
        names = MirrorObject.objects.filter(cluster=cluster, kind="Node").values_list("name", flat=True)
        nodes = capacity.nodes_with_units(cluster) ^ set(names)
        evidence = {node: {"kind": kind, "name": "", "resource_version": "listed"} for node in nodes}
        capacity.record(cluster, evidence, partial(_units, *_facts(cluster, nodes)), at, estimated=True)
    if kind == "Node":
        nodes = node_intervals.open_nodes(cluster) ^ set(names)
        evidence = {node: {"kind": kind, "name": "", "resource_version": "listed"} for node in nodes}
        node_intervals.record(cluster, evidence, _sizes(_facts(cluster, nodes)[0]), at, estimated=True)


def add_values(cluster: str, rows: OpenUnits, found: Discovered) -> None:
    """Add what discovery found to these intervals, which were open before discovery read the mirror: what began since
    may differ from what it read. If any was new, add what was in use before it was known.
    """
    units = {unit: row.found for unit, row in rows.items()}
    known = {unit: row.value for unit, row in rows.items()}
    offered = Flavor.objects.filter(cluster=cluster, accepted=True, hidden=False).values_list("name", flat=True)
    if capacity.add_values(cluster, rows, capacity_values.values(units, known, found, set(offered))):
        inferred_capacity.infer(cluster)


def _nodes(change: Change) -> set[str]:
    """Return the node that a change is about; a ResourceSlice may have been another's before."""
    if change.new.ref.kind == "Node":
        return {change.new.ref.name}
    forms = (change.new if not change.new.gone else None, change.old)
    return {slice_facts(form)["node"] for form in forms if form is not None and form.facts} - {""}


def _evidence(change: Change) -> dict[str, str]:
    new = change.new
    revision = "gone" if new.gone else str(new.resource_version)
    return {"kind": new.ref.kind, "name": new.ref.name, "resource_version": revision}


def _facts(cluster: str, nodes: Collection[str]) -> tuple[Mapping[str, NodeFacts], Sequence[ResourceSliceFacts]]:
    """Return the nodes by name, and their ResourceSlices, from the mirror."""
    objects = MirrorObject.objects.filter(cluster=cluster)
    found = dict(objects.filter(kind="Node", name__in=nodes).values_list("name", "facts"))
    slices = objects.filter(kind="ResourceSlice", facts__node__in=list(nodes)).order_by("name")
    return cast(dict[str, NodeFacts], found), cast(list[ResourceSliceFacts], slices.values_list("facts", flat=True))


def _sizes(nodes: Mapping[str, NodeFacts]) -> dict[str, FoundNode]:
    """Return the size of each node, 0 if an older release observed it, and the term that its labels say."""
    found = {}
    for name, facts in nodes.items():
        size = facts["size"] if "size" in facts else NodeSize(cpu_millicores=0, memory_mib=0)
        cpu, memory = (max(0, min(amount, MAX_SIZE)) for amount in (size["cpu_millicores"], size["memory_mib"]))
        found[name] = FoundNode(term_of_labels(facts["labels"]), cpu, memory)
    return found


def _units(
    nodes: Mapping[str, NodeFacts], slices: Iterable[ResourceSliceFacts], before: Mapping[Unit, FoundUnit]
) -> dict[Unit, FoundUnit]:
    """Return what the nodes have now, given what they had before."""
    slices_of: dict[str, list[ResourceSliceFacts]] = defaultdict(list)
    for one in slices:
        slices_of[one["node"]].append(one)
    known: dict[tuple[str, str], dict[str, FoundUnit]] = defaultdict(dict)
    for unit, there in before.items():
        known[unit.node, unit.kind][unit.name] = there
    found: dict[Unit, FoundUnit] = {}
    for name, facts in nodes.items():
        gpus = node_units.gpus(facts, slices_of[name], known[name, GPU])
        resources = node_units.resources(facts, known[name, RESOURCE])
        found |= {Unit(name, GPU, gpu): one for gpu, one in gpus.items()}
        found |= {Unit(name, RESOURCE, resource): one for resource, one in resources.items()}
    return found


WATCHED = Recorder(each=_watched)
LISTED = Recorder(batch=_listed_changes, listed=record_listed)
