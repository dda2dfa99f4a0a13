"""Estimates what the watcher of a large fleet needs, from the measured cost of an event. Pure.

Kubernetes' defaults, and assumptions that an operator can replace by own numbers: ``Fleet``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

DAY_S = 86_400.0


@dataclass(frozen=True)
class EventCost:
    """Processor milliseconds of one event in the watcher and in PostgreSQL."""

    watcher_ms: float
    database_ms: float

    def document(self) -> dict[str, float]:
        return {name: round(value, 3) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Fleet:
    """A fleet and what happens in it.

    - ``node_report_s``: a kubelet reports an unchanged node every five minutes (``nodeStatusReportFrequency``).
    - ``hold_hours``: how long a GPU is held on average. All are in use.
    - ``events_of_hold``: events of a hold that the portal records, from the lease to its release.
    - ``other_pods`` of a node, without GPUs, live ``other_pod_hours`` and have ``events_of_pod`` each.
    """

    nodes: int = 10_000
    gpus_of_node: int = 8
    node_report_s: float = 300.0
    hold_hours: float = 4.0
    events_of_hold: int = 20
    other_pods: int = 30
    other_pod_hours: float = 24.0
    events_of_pod: int = 6
    objects_of_hold: int = 4
    """Lease, quota, claim and pod."""

    def events_per_s(self) -> dict[str, float]:
        """Return the events a second by what they are to the portal."""
        pods = self.nodes * self.other_pods / (self.other_pod_hours * DAY_S / 24)
        return {
            "unchanged node": self.nodes / self.node_report_s,
            "changed": self.holds_per_s() * self.events_of_hold,
            "left out": pods * self.events_of_pod,
        }

    def holds_per_s(self) -> float:
        """Return the holds that begin a second; each takes the processor time that ``throughput`` measures."""
        return self.nodes * self.gpus_of_node / (self.hold_hours * DAY_S / 24)

    def objects(self) -> int:
        """Return the objects that the mirror has: nodes, their ResourceSlices, and those of holds."""
        return 2 * self.nodes + self.nodes * self.gpus_of_node * self.objects_of_hold


def document(costs: Mapping[str, EventCost], points: Sequence[Mapping[str, Any]], fleet: Fleet | None = None) -> Any:
    """Return the estimate: events and processor shares a second, objects, and by straight lines through the first and
    the last point the watcher's memory and its start. A figure that falls with more objects is noise: it is not
    extended.
    """
    fleet = fleet or Fleet()
    rates = fleet.events_per_s()
    watcher = sum(rate * costs[name].watcher_ms for name, rate in rates.items() if name in costs) / 1000
    database = sum(rate * costs[name].database_ms for name, rate in rates.items() if name in costs) / 1000
    first, last, objects = points[0], points[-1], fleet.objects()

    def at_fleet(key: str) -> float:
        grown = max(1, last["objects"] - first["objects"])
        slope = max(0.0, (last[key] - first[key]) / grown)
        return float(last[key]) + slope * (objects - last["objects"])

    return {
        "assumed": asdict(fleet),
        "events_per_s": {name: round(rate, 1) for name, rate in rates.items()},
        "holds_per_s": round(fleet.holds_per_s(), 1),
        "watcher_processors": round(watcher, 2),
        "database_processors": round(database, 2),
        "objects": objects,
        "memory_bytes": round(at_fleet("memory_bytes")),
        "peak_bytes": round(at_fleet("peak_bytes")),
        "restart_s": round(at_fleet("restart_s"), 1),
        "cold_start_s": round(at_fleet("cold_start_s"), 1),
    }
