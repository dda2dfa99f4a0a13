"""The demo's fleet, people, quotas and prices in the database, as watcher and seeds of ``make demo`` leave them.

Nodes and ResourceSlices are those that the simulated hardware publishes; there is no control plane.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from allocations.cluster import kinds
from allocations.cluster.kinds import KINDS
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_sync
from demo import people, presets, prices
from deploy.local.fleet import publisher, spec
from portal.core import clock, heartbeat
from quotas.limits import seeds as quotas
from quotas.metering.hours import hour_of
from tests.support import capacity_bodies, kept_rows
from tests.support.clusters import LOCAL

REVISION = 10**6


def record(at: datetime) -> None:
    """Record that the demo is started at this time: its fleet is listed and offered, its teams are seeded."""
    kept_rows.once(("demo", at), lambda: _write(at))
    watched_until(at)


def run() -> None:
    """Record that the demo runs: it was started when this hour began, and its processes report."""
    record(hour_of(clock.now()))
    report()


def report() -> None:
    """Record that the mirror is complete now, and that worker and watcher run."""
    watched_until(clock.now())
    heartbeat.beat("worker")
    heartbeat.beat("watcher")


def _write(at: datetime) -> None:
    bodies = list(_bodies(spec.load(spec.FLEET_FILE)))
    with clock.frozen(at):
        people.seed()
        for kind in ("Node", "ResourceSlice"):
            of_kind = [body for body in bodies if body["kind"] == kind]
            found = [kinds.observe(KINDS[kind], body, at=at, live=False) for body in of_kind]
            record_list(LOCAL, KINDS[kind], [one for one in found if one is not None], REVISION, at)
        reconcile_inventory(LOCAL)
        capacity_bodies.accept_all()
        reconcile_inventory(LOCAL)
        quotas.seed_half_quotas()
        prices.price()
        presets.seed_presets()


def watched_until(at: datetime) -> None:
    """Record that the mirror is complete at this time."""
    with clock.frozen(at):
        record_sync(LOCAL, *((kind, REVISION, at) for kind in KINDS.values()))


def _bodies(fleet: spec.Fleet) -> Iterator[dict[str, Any]]:
    nodes, pools = publisher.desired(fleet, {}, {})
    for name, node in nodes.items():
        status = node["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}
        yield node | {"metadata": node["metadata"] | {"uid": name, "resourceVersion": "1"}, "status": status}
    for of_node in pools.values():
        for name, one in of_node.items():
            pool = one["pool"] | {"generation": 1}
            metadata = {"name": name, "uid": name, "resourceVersion": "1"}
            yield {"kind": "ResourceSlice", "metadata": metadata, "spec": one | {"pool": pool}}
