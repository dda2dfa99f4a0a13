"""Records when allocations have pods, in the transaction in which the watcher sees it.

A pod counts from when it is bound to a node until it has finished or is gone. Holder pods are the portal's own.
"""

from datetime import datetime

from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import Snapshot, is_on_node
from allocations.domain.observed_facts import pod_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile import mirror
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.recorder import Recorder, Seen
from quotas.metering import hold_use
from quotas.metering.hold_use import Sighting
from quotas.metering.models import HoldUse


def _each(batch: BatchState, seen: Seen) -> None:
    """Record which of the allocations got their first pod with the change, and which lost their last; a statement for
    each of both, none for any other change.
    """
    cluster, new, rows, snapshots = batch.cluster, seen.change.new, seen.concerned, seen.snapshots
    if snapshots is None or new.ref.kind != "Pod":
        return
    before = {row.pk for row in rows if _has_pod(row, snapshots.before)}
    after = {row.pk for row in rows if _has_pod(row, snapshots.after)}
    sighting = Sighting(new.at, new.resource_version, estimated=not new.live)
    if before - after:
        hold_use.end(cluster, before - after, sighting)
    if after - before:
        hold_use.begin(cluster, after - before, sighting)


def _listed(cluster: str, kind: str, at: datetime) -> None:
    """Record what no change has told, once all pods were listed."""
    if kind != "Pod":
        return
    snapshots = mirror.of_holds(cluster)
    rows = spec_of_row.rows().filter(project__cluster=cluster, ended_at=None, number__isnull=False)
    using = {row.pk for row in rows if _has_pod(row, snapshots.get(row.project.namespace, Snapshot()))}
    known = set(HoldUse.objects.filter(cluster=cluster, end=None).values_list("holder_id", flat=True))
    seen = Sighting(at, 0, estimated=True)
    hold_use.end(cluster, known - using, seen)
    hold_use.begin(cluster, using - known, seen)
    hold_use.recorded_from(cluster, seen)


def _has_pod(row: Allocation, snapshot: Snapshot) -> bool:
    pods = map(pod_facts, hold_quota.pods(spec_of_row.resolved_spec(row), snapshot))
    return any(is_on_node(pod) and not pod.get("holder") for pod in pods)


RECORDER = Recorder(each=_each, listed=_listed)
