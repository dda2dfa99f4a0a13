"""Checks whether anything uses more than its lease, and ends it: the last defence behind the guards.

1. What the mirror shows beyond a lease is recorded as a sighting (``allocations.lifecycle.lease_excess``).
2. If it is still there after the mirror of pods, claims and Workloads has moved on, the API server is asked: the same
   rule, over objects read live.
3. What the API server confirms is ended (``termination``), with an event, and an entry in timeline and audit log.
4. A sighting that is over is closed.
5. What is reserved and not charged is enqueued for metering.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import structlog
from django.db.models import Q

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.kinds import KINDS, observe
from allocations.domain.objects import ObservedObject, Snapshot
from allocations.lifecycle import lease_excess
from allocations.lifecycle.lease_excess import Excess
from allocations.models import LeaseExcess, MirrorObject, WatchState
from allocations.reconcile import mirror
from allocations.reconcile.enforcement import holds, termination
from allocations.reconcile.metering import unbilled
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.models import Project
from portal.workqueue import targets

log = structlog.get_logger(__name__)
WATCHED = ("Pod", "ResourceClaim", "Workload")


def check_leases(client: Client) -> None:
    """Check all projects of the client's cluster once. The watcher repeats it, since it knows that the mirror has
    advanced.

    Raises MirrorStale if the watcher is not running, ClusterUnavailable if the API server did not answer for some.
    """
    cluster = client.cluster
    with advisory_lock(targets.leases(cluster)):
        mirror.require_recent(cluster)
        now, failed = clock.now(), None
        live: dict[str, Snapshot] = {}
        sightings, moved_on_at = record_sightings(cluster, now), _moved_on_at(cluster)
        for sighting, excess in sightings:
            if sighting.seen_at >= moved_on_at:
                continue
            try:
                if sighting.namespace not in live:
                    live[sighting.namespace] = _read(client, sighting.namespace, now)
                if _confirm(client, sighting, excess, live[sighting.namespace]):
                    del live[sighting.namespace]
            except (ClusterRefused, ClusterUnavailable) as error:
                # What cannot be ended now must not keep all else from being ended.
                log.error("lease.not_ended", holder=f"{excess.holder.kind}/{excess.holder.id}", error=str(error))
                failed = error
        unbilled.enqueue(cluster)
    if isinstance(failed, ClusterUnavailable):
        raise failed


def record_sightings(cluster: str, now: datetime) -> list[tuple[LeaseExcess, Excess]]:
    """Record what the mirror of a cluster shows beyond leases, and return it; a fixed number of queries, and a few for
    each hold that lost its lease.
    """
    snapshot = _seen(cluster)
    return _note(cluster, lease_excess.find(snapshot, holds.holds(cluster, snapshot, now), now), now)


def _seen(cluster: str) -> Snapshot:
    """What the rule reads, of projects' namespaces; one query."""
    namespaces = Project.objects.filter(cluster=cluster).values("namespace")
    rows = MirrorObject.objects.filter(cluster=cluster, namespace__in=namespaces)
    bound = Q(kind="Pod") & ~Q(facts__node="") & ~Q(facts__gpus={})
    given = Q(kind="ResourceClaim") & ~Q(facts__devices=[])
    reserving = Q(kind="Workload") & ~Q(facts__cluster_queue="")
    return Snapshot(map(mirror.seen, rows.filter(bound | given | reserving)))


def _note(cluster: str, found: Iterable[Excess], now: datetime) -> list[tuple[LeaseExcess, Excess]]:
    """Write down what is new, close what is over; returns what is open, each with what was found of it now."""
    rows = LeaseExcess.objects.filter(cluster=cluster, over_at=None)
    there = {(row.holder_kind, row.holder, row.resource): row for row in rows}
    open_now = []
    for excess in found:
        holder = excess.holder
        row = there.pop((holder.kind.value, holder.id, excess.resource), None) or LeaseExcess(
            cluster_id=cluster,
            holder_kind=holder.kind.value,
            holder=holder.id,
            name=holder.name,
            namespace=holder.namespace,
            resource=excess.resource,
            seen_at=now,
        )
        if row.pk is None or (row.used, row.reserved) != (excess.used, excess.reserved):
            row.used, row.reserved, row.message = excess.used, excess.reserved, excess.sentence
            row.save()
            log.warning("lease.excess", holder=f"{holder.kind}/{holder.id}", message=row.message)
        open_now.append((row, excess))
    LeaseExcess.objects.filter(pk__in=[row.pk for row in there.values()]).update(over_at=now)
    return open_now


def _moved_on_at(cluster: str) -> datetime:
    """Up to when the mirror of every kind that counts is complete."""
    states = WatchState.objects.filter(cluster=cluster, kind__in=WATCHED)
    return min(states.values_list("synced_at", flat=True))


def _confirm(client: Client, sighting: LeaseExcess, excess: Excess, snapshot: Snapshot) -> bool:
    """End the use that the API server confirms to be beyond the lease; return whether anything was ended.

    ``snapshot`` is the namespace as read from the API server.
    """
    now = clock.now()
    there = holds.holds(client.cluster, snapshot, now, project__namespace=sighting.namespace)
    live = lease_excess.find(snapshot, there, now)
    same = next((one for one in live if (one.holder, one.resource) == (excess.holder, excess.resource)), None)
    if same is None:
        return False
    if sighting.confirmed_at is None:
        sighting.confirmed_at = now
        sighting.save(update_fields=["confirmed_at"])
    return termination.end(client, sighting, same)


def _read(client: Client, namespace: str, now: datetime) -> Snapshot:
    """Pods, claims and Workloads of a namespace, as they are now."""
    found = []
    for name in WATCHED:
        kind = KINDS[name]
        observed, _ = client.list(kind, partial(observe, kind, at=now, live=True), namespace)
        found += [
            ObservedObject(o.ref, o.uid, o.resource_version, o.digest, o.allocation, o.deleting, o.facts or {})
            for o in observed
            if o
        ]
    return Snapshot(found)
