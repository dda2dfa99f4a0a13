"""Checks whether anything uses more than its lease reserves, and ends that use. The last defence behind the guards.

1. Use beyond a lease in the mirror is recorded as a sighting (``allocations.lifecycle.lease_excess``).
2. If it is still there after the mirror of pods, claims and Workloads has advanced, the same rule is applied to objects
   read from the API server.
3. A confirmed excess is ended (``termination``), with an event and an entry in timeline and audit log.
4. A sighting is closed when its excess is over.
5. Targets with reserved use that the ledger does not charge are enqueued.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import structlog
from django.db.models import Q, QuerySet

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
from portal.core.reading import Columns, Rows, read_tables
from portal.tenants.models import Project
from portal.workqueue import targets

log = structlog.get_logger(__name__)
WATCHED = ("Pod", "ResourceClaim", "Workload")


def check_leases(client: Client) -> None:
    """Check all projects of the client's cluster once. The watcher enqueues it after the mirror has advanced.

    Raises MirrorStale if the watcher is not running, ClusterUnavailable if the API server did not answer for some.
    """
    cluster = client.cluster
    with advisory_lock(targets.leases(cluster)):
        mirror.require_recent(cluster)
        now, failure = clock.now(), None
        live: dict[str, Snapshot] = {}
        sightings = record_sightings(cluster, now)
        complete_until = _complete_until(cluster) if sightings else now
        for sighting, excess in sightings:
            if sighting.seen_at >= complete_until:
                continue
            try:
                if sighting.namespace not in live:
                    live[sighting.namespace] = _read(client, sighting.namespace, now)
                if _confirm(client, sighting, excess, live[sighting.namespace]):
                    del live[sighting.namespace]
            except (ClusterRefused, ClusterUnavailable) as error:
                # One excess that cannot be ended must not keep the others from being ended.
                holder = f"{excess.holder.kind}/{excess.holder.id}"
                log.error("lease.not_ended", holder=holder, namespace=sighting.namespace, error=str(error))
                failure = error
        unbilled.enqueue(cluster)
    if isinstance(failure, ClusterUnavailable):
        raise failure


def record_sightings(cluster: str, now: datetime) -> list[tuple[LeaseExcess, Excess]]:
    """Record the use beyond leases in the mirror of a cluster; return the open sightings, each with its excess.

    One query, and a few for each hold that lost its lease.
    """
    objects, live, stored = read_tables(
        Columns(_usage(cluster), mirror.COLUMNS),
        holds.part(cluster),
        Rows(LeaseExcess.objects.filter(cluster=cluster, over_at=None)),
    )
    snapshot = mirror.of_parts(objects)
    excesses = lease_excess.find(snapshot, holds.of_rows(cluster, live, snapshot), now)
    return _store_sightings(cluster, excesses, stored, now)


def _usage(cluster: str) -> QuerySet[MirrorObject]:
    """Return the bound pods, allocated claims and reserving Workloads of all projects."""
    namespaces = Project.objects.filter(cluster=cluster).values("namespace")
    rows = MirrorObject.objects.filter(cluster=cluster, namespace__in=namespaces)
    bound_pods = Q(kind="Pod") & ~Q(facts__node="") & ~Q(facts__gpus={})
    allocated_claims = Q(kind="ResourceClaim") & ~Q(facts__devices=[])
    reserving_workloads = Q(kind="Workload") & ~Q(facts__cluster_queue="")
    return rows.filter(bound_pods | allocated_claims | reserving_workloads)


def _store_sightings(
    cluster: str, excesses: Iterable[Excess], stored: Iterable[LeaseExcess], now: datetime
) -> list[tuple[LeaseExcess, Excess]]:
    """Store new sightings, close those of the ``stored`` ones that are over; return the open ones, each with its
    excess.
    """
    open_rows = {(row.holder_kind, row.holder, row.resource): row for row in stored}
    sightings = []
    for excess in excesses:
        holder = excess.holder
        row = open_rows.pop((holder.kind.value, holder.id, excess.resource), None) or LeaseExcess(
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
        sightings.append((row, excess))
    if open_rows:
        LeaseExcess.objects.filter(pk__in=[row.pk for row in open_rows.values()]).update(over_at=now)
    return sightings


def _complete_until(cluster: str) -> datetime:
    """Return the time up to which the mirror of all WATCHED kinds is complete."""
    states = WatchState.objects.filter(cluster=cluster, kind__in=WATCHED)
    return min(states.values_list("synced_at", flat=True))


def _confirm(client: Client, sighting: LeaseExcess, excess: Excess, snapshot: Snapshot) -> bool:
    """End the excess if the API server confirms it; return whether anything was ended.

    ``snapshot`` is the namespace as read from the API server.
    """
    now = clock.now()
    live_holds = holds.holds(client.cluster, snapshot, project__namespace=sighting.namespace)
    live = lease_excess.find(snapshot, live_holds, now)
    confirmed = next((one for one in live if (one.holder, one.resource) == (excess.holder, excess.resource)), None)
    if confirmed is None:
        return False
    if sighting.confirmed_at is None:
        sighting.confirmed_at = now
        sighting.save(update_fields=["confirmed_at"])
    return termination.end(client, sighting, confirmed)


def _read(client: Client, namespace: str, now: datetime) -> Snapshot:
    """Return the pods, claims and Workloads of a namespace, read from the API server."""
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
